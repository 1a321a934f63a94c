#!/usr/bin/env bash
# What plugpoll sees on filesystems that CI has no time or place for: bindfs, sshfs, gVisor, and, inside User Mode Linux, NFS, 9p and vfat. Prints a
# table, one line for each, and fails if plugpoll does not do there what it must (scanner/realfs_probe_test.go says what that is). A second table has
# what `plugpoll check --fs` says of each.
#
# Needs Debian 12, root, CAP_SYS_ADMIN and /dev/fuse. Installs what is missing with apt-get.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

packages=(bindfs sshfs fuse3 openssh-server openssh-client runsc user-mode-linux kmod nfs-kernel-server nfs-common diod dosfstools e2fsprogs iproute2)
missing=()
for p in "${packages[@]}"; do
	dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
done
if [ ${#missing[@]} -gt 0 ]; then
	echo "installing ${missing[*]}" >&2
	export DEBIAN_FRONTEND=noninteractive
	{ apt-get update -qq && apt-get install -qq -y --no-install-recommends "${missing[@]}"; } >&2 || exit 1
fi

work=$(mktemp -d /tmp/real.XXXXXX)
sshd='' peer=''
finish() {
	[ -z "$sshd" ] || kill "$sshd" 2>/dev/null
	[ -z "$peer" ] || kill "$peer" 2>/dev/null
	awk -v base="$work/" 'index($5, base) == 1 { print $5 }' /proc/self/mountinfo | tac | while read -r m; do
		umount "$m" 2>/dev/null || umount -l "$m"
	done
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

probe=$work/probe plugpoll=$work/plugpoll
CGO_ENABLED=0 go test -c -o "$probe" ./scanner && CGO_ENABLED=0 go build -o "$plugpoll" ./cmd/plugpoll || exit 1

table=$work/table checks=$work/checks failed=''
: >"$table"
: >"$checks"

# measure NAME COMMAND… runs the probe by a command, keeps its line of the table, and shows the rest if it failed.
measure() {
	local name=$1 status
	shift
	PLUGPOLL_PROBE=$name timeout -k 5 300 "$@" >"$work/log" 2>&1 </dev/null
	status=$?
	grep '^| ' "$work/log" >>"$table" || status=1
	if [ $status -ne 0 ]; then
		failed+=" [$name]"
		sed "s/^/$name: /" "$work/log" >&2
	fi
}

# check NAME COMMAND… runs `plugpoll check --fs` on the mounted directory, by a command if there is one, keeps its line of the second table, and shows what
# does not hold.
check() {
	local name=$1
	shift
	timeout -k 5 300 "$@" sh .ci/check-line.sh "$name" "$plugpoll" "$work/mnt" >"$work/log" 2>&1 </dev/null || failed+=" [check of $name]"
	sed -n 's/^check: //p' "$work/log" >>"$checks"
	sed "/^check: /d; s/^/$name: /" "$work/log" >&2
}

# fresh makes the directories that the next filesystem is made of.
fresh() { rm -rf "${work:?}/back" && mkdir -p "$work/back" "$work/mnt"; }

one() {
	measure "$1" env PLUGPOLL_PROBE_DIR="$work/mnt" PLUGPOLL_PROBE_BACK="$work/back" "$probe" -test.run '^TestProbe$'
	check "$1"
}

local_filesystems() {
	fresh && mount -t tmpfs -o mode=755 plugpoll "$work/mnt" && mount --bind "$work/mnt" "$work/back" && one tmpfs
	umount "$work/back" "$work/mnt"
	truncate -s 32M "$work/disk" && mkfs.ext4 -q -F "$work/disk"
	mount -o loop "$work/disk" "$work/mnt" && mount --bind "$work/mnt" "$work/back" && one ext4
	umount "$work/back" "$work/mnt"
	mkfs.ext2 -q -F -I 128 "$work/disk" 2>/dev/null
	mount -o loop "$work/disk" "$work/mnt" && mount --bind "$work/mnt" "$work/back" && one 'ext2, 128-byte inodes'
	umount "$work/back" "$work/mnt"
	fresh && mount -t tmpfs plugpoll "$work/back" && mkdir "$work/back/lower" "$work/back/upper" "$work/back/work" &&
		mount -t overlay -o "lowerdir=$work/back/lower,upperdir=$work/back/upper,workdir=$work/back/work" plugpoll "$work/mnt" && check overlay
	umount "$work/mnt" "$work/back"
}

bindfs_filesystem() {
	fresh && bindfs "$work/back" "$work/mnt" && one bindfs
	fusermount3 -u "$work/mnt" || fusermount -u "$work/mnt"
}

# sshd runs on the loopback alone, with keys of its own that end with it.
sshd_start() {
	mkdir -p /run/sshd "$work/ssh"
	chmod 700 "$work/ssh"
	[ -e "$work/ssh/host" ] || ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/host"
	[ -e "$work/ssh/user" ] || ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/user"
	cp "$work/ssh/user.pub" "$work/ssh/authorized"
	/usr/sbin/sshd -D -f /dev/null -h "$work/ssh/host" -p 22022 -o ListenAddress=127.0.0.1 -o StrictModes=no -o PidFile=none \
		-o AuthorizedKeysFile="$work/ssh/authorized" -o PermitRootLogin=yes -o UsePAM=no -o Subsystem='sftp internal-sftp' &
	sshd=$!
	for _ in $(seq 100); do
		ssh-keyscan -p 22022 127.0.0.1 >"$work/ssh/known" 2>/dev/null && [ -s "$work/ssh/known" ] && return
		sleep 0.1
	done
	return 1
}

sshfs_filesystem() {
	local keys="IdentityFile=$work/ssh/user,UserKnownHostsFile=$work/ssh/known,port=22022"
	sshd_start || { failed+=' [sshd]' && return; }
	fresh && sshfs -o "$keys,dir_cache=no,direct_io" "root@127.0.0.1:$work/back" "$work/mnt" && one sshfs
	fusermount3 -u "$work/mnt"
	fresh && sshfs -o "$keys" "root@127.0.0.1:$work/back" "$work/mnt" && one 'sshfs, default caches'
	fusermount3 -u "$work/mnt"
	kill "$sshd"
	sshd=''
}

# gVisor's kernel has inotify, which says nothing about what happens outside. The other side is a process out here.
gvisor() {
	local name=$1 access=$2
	fresh && rm -rf "${work:?}/mnt" && mkdir "$work/mnt"
	PLUGPOLL_PEER=$work/mnt "$probe" -test.run '^TestProbePeer$' >/dev/null 2>&1 &
	peer=$!
	measure "$name" env PLUGPOLL_PROBE_DIR="$work/mnt" runsc --platform=ptrace --network=none --ignore-cgroups --host-uds=open \
		--file-access="$access" do -force-overlay=false "$probe" -test.run '^TestProbe$'
	check "$name" runsc --platform=ptrace --network=none --ignore-cgroups --host-uds=all --file-access="$access" do -force-overlay=false
	kill "$peer" 2>/dev/null
	wait "$peer" 2>/dev/null
	peer=''
}

uml() {
	if ! .ci/uml.sh "$probe" .ci/uml-inside.sh "$work/uml" "$plugpoll" .ci/check-line.sh >"$work/uml.log" 2>&1; then
		failed+=' [User Mode Linux]'
		sed 's/^/uml: /' "$work/uml.log" "$work/uml/log" >&2
	fi
	grep -h '^| ' "$work/uml/log" >>"$table" || failed+=' [no line from User Mode Linux]'
	sed -n 's/^check: //p' "$work/uml/log" >>"$checks"
	grep -v '^| \|^check: ' "$work/uml/log" >&2
}

local_filesystems
bindfs_filesystem
sshfs_filesystem
gvisor 'gVisor, shared' shared
gvisor 'gVisor, exclusive' exclusive
uml

printf '\nMeasured %s on Linux %s, %s\n\n' "$(date -u +%F)" "$(uname -r)" "$(go version | cut -d' ' -f3,4)"
echo '| filesystem | discover | connect | granularity | skipping | limits |'
echo '|---|---|---|---|---|---|'
cat "$table"
printf '\n| filesystem | rules that hold | broken | not checked |\n|---|---|---|---|\n'
cat "$checks"
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
