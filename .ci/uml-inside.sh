#!/bin/sh
# Runs inside User Mode Linux (uml.sh): measures NFS 4.2, 9p and vfat with the test binary $PROBE, and checks them with $PLUGPOLL. Servers and clients are on the same small kernel.
failed=0
mkdir /mnt/back /mnt/dir

# one NAME runs the probe on what is mounted on /mnt/dir.
one() {
	rm -rf /mnt/back/*
	PLUGPOLL_PROBE=$1 PLUGPOLL_PROBE_DIR=/mnt/dir PLUGPOLL_PROBE_BACK=$back timeout -k 5 400 "$PROBE" -test.run '^TestProbe$' || failed=1
	timeout -k 5 300 sh "$CHECK" "$1" "$PLUGPOLL" /mnt/dir || failed=1
}

missing() {
	echo "cannot mount $1"
	failed=1
}

nfs() {
	modprobe -d "$MODULES" nfsd
	mount -t tmpfs tmpfs /var/lib/nfs
	mkdir -p /var/lib/nfs/v4recovery /var/lib/nfs/rpc_pipefs
	touch /var/lib/nfs/etab /var/lib/nfs/rmtab
	mount -t nfsd nfsd /proc/fs/nfsd
	exportfs -i -o rw,no_root_squash,fsid=0,insecure,no_subtree_check '*:/mnt/back'
	rpc.mountd -N 2 -N 3 # NFS 4 asks it through the kernel who may come
	rpc.nfsd -N 3 -G 10 -L 10 2
	back=/mnt/back
	export PLUGPOLL_PROBE_BREAK='rpc.nfsd 0' PLUGPOLL_PROBE_MEND='rpc.nfsd -N 3 -G 10 -L 10 2'
	# soft: calls without an answer fail, by and by.
	for options in '' ,actimeo=1; do
		if mount -t nfs4 -o "vers=4.2,proto=tcp,soft,timeo=10,retrans=1$options" 127.0.0.1:/ /mnt/dir; then
			one "NFS 4.2$(echo "$options" | sed 's/,/, /')"
			umount -l /mnt/dir
		else
			missing NFS
		fi
	done
	unset PLUGPOLL_PROBE_BREAK PLUGPOLL_PROBE_MEND
	rpc.nfsd 0
}

ninep() {
	back=/mnt/back
	diod -f -n -e /mnt/back -l 127.0.0.1:5640 -L stderr >/dev/null 2>&1 &
	sleep 1
	if mount -t 9p -o trans=tcp,port=5640,version=9p2000.L,aname=/mnt/back,uname=root,access=user 127.0.0.1 /mnt/dir; then
		one 9p
		umount -l /mnt/dir
	else
		missing 9p
	fi
}

vfat() {
	mkfs.vfat "$DISK" >/dev/null
	if mount -t vfat "$DISK" /mnt/dir; then
		back=/mnt/dir
		one vfat
		umount /mnt/dir
	else
		missing vfat
	fi
}

vfat
ninep
nfs
exit $failed
