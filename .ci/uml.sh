#!/bin/sh
# Boots a Linux kernel as a process (User Mode Linux), for filesystems that this machine's kernel lacks: NFS, 9p, vfat.
#
#   .ci/uml.sh PROBE SCRIPT OUT [PLUGPOLL CHECK]
#
# SCRIPT runs there as root and finds the test binary PROBE in $PROBE, the others likewise, and OUT, where its output goes to the file log, at /mnt/out. The root filesystem is
# this machine's, read-only; /mnt, /run and /tmp are fresh, and $DISK is an empty disk of 16 MB. The exit status is SCRIPT's. Needs the packages user-mode-linux and kmod.
set -eu
probe=$(readlink -f "$1")
script=$(readlink -f "$2")
mkdir -p "$3"
out=$(readlink -f "$3")
rm -f "$out/status"

boot=$(mktemp -d /var/tmp/uml.XXXXXX)
trap 'rm -rf "$boot"' EXIT
mkdir -p "$boot/lib/modules"
ln -s /usr/lib/uml/modules/* "$boot/lib/modules/"
truncate -s 16M "$boot/disk"
cp "$probe" "$boot/probe"
cp "$script" "$boot/script"
[ $# -lt 5 ] || { cp "$4" "$boot/plugpoll" && cp "$5" "$boot/check"; }
# The kernel asks for modules by this program.
cat >"$boot/modprobe" <<-END
	#!/bin/sh
	exec /sbin/modprobe -d $boot "\$@"
END
cat >"$boot/init" <<-END
	#!/bin/sh
	export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/mnt PROBE=$boot/probe PLUGPOLL=$boot/plugpoll CHECK=$boot/check MODULES=$boot DISK=/run/disk
	mount -t proc proc /proc
	mount -t sysfs sysfs /sys
	for d in /run /mnt /tmp; do mount -t tmpfs tmpfs \$d; done
	mount -t devtmpfs devtmpfs /dev 2>/dev/null
	mknod /run/disk b 98 0
	mkdir /mnt/out
	mount -t hostfs none /mnt/out -o $out
	echo $boot/modprobe >/proc/sys/kernel/modprobe
	ip link set lo up
	sh $boot/script >/mnt/out/log 2>&1
	echo \$? >/mnt/out/status
	sync
	echo o >/proc/sysrq-trigger
	sleep 10
END
chmod +x "$boot/modprobe" "$boot/init"
timeout -k 5 600 linux.uml mem=768M ubd0="$boot/disk" umid="plugpoll$$" rootfstype=hostfs rootflags=/ ro init="$boot/init" con=null con0=fd:0,fd:1 quiet \
	</dev/null >"$out/console" 2>&1 || true
if [ ! -f "$out/status" ]; then
	echo "uml.sh: no result; the console said:" >&2
	cat "$out/console" >&2
	exit 1
fi
exit "$(cat "$out/status")"
