#!/bin/sh
# Shows plugpoll at work: the daemon on a fresh directory with one plugin beside it, until Ctrl-C.
#
#   sh cmd/demo.sh PLUGPOLL        (make run builds the binary and does this)
set -eu

plugpoll=${1:?usage: demo.sh PLUGPOLL}
dir=$(mktemp -d "${TMPDIR:-/tmp}/plugpoll.XXXXXX")
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

cat <<END
The daemon watches $dir

In another terminal, from this folder:
  add a plugin     $plugpoll plugin --socket $dir/second.sock --type CSIPlugin --name second.example.com --version 1.0.0
  remove it        Ctrl-C there, or rm $dir/second.sock
  look yourself    $plugpoll scan $dir
Ctrl-C here ends the daemon and its plugin.

END

"$plugpoll" run --dir "$dir" &
daemon=$!
"$plugpoll" plugin --socket "$dir/demo.sock" --type CSIPlugin --name demo.example.com --version 1.0.0 &
plugin=$!

# The daemon ends by itself only when something is wrong; its exit code says what.
wait "$daemon"
