#!/bin/sh
# Shows plugpoll at work: the daemon on a fresh directory with one plugin beside it, until Ctrl-C.
#
#   sh cmd/demo.sh PLUGPOLL        (make run builds the binary and does this)
set -eu

plugpoll=${1:?usage: demo.sh PLUGPOLL}
dir=$(mktemp -d "${TMPDIR:-/tmp}/plugpoll.XXXXXX")
if [ ${#dir} -gt 80 ]; then # the address of a socket in it would be too long
	rmdir "$dir"
	dir=$(mktemp -d /tmp/plugpoll.XXXXXX)
fi
daemon='' plugin=''

# The shell starts what runs in the background with SIGINT ignored, so both are told to end by SIGTERM.
finish() {
	trap '' INT TERM HUP
	for pid in $plugin $daemon; do
		kill -TERM "$pid" 2>/dev/null || :
		wait "$pid" || :
	done
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 0' INT TERM HUP

# word prints a path as one word for a shell.
word() {
	case $1 in
	*[!A-Za-z0-9/._+-]*) printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")" ;;
	*) printf %s "$1" ;;
	esac
}

cat <<END
The daemon watches $dir, and a plugin starts there.

In another terminal, from this folder:
  add a plugin     $(word "$plugpoll") plugin --socket $(word "$dir/second.sock") --name second.example.com
  remove it        Ctrl-C there, or rm $(word "$dir/second.sock")
  see it           $(word "$plugpoll") status, or http://127.0.0.1:9808/ in a browser
  look yourself    $(word "$plugpoll") scan $(word "$dir")
Ctrl-C here ends the daemon and its plugin.

END

"$plugpoll" run --dir "$dir" &
daemon=$!
"$plugpoll" plugin --socket "$dir/demo.sock" --name demo.example.com &
plugin=$!

# The daemon ends by itself only when something is wrong; its exit code says what.
wait "$daemon"
