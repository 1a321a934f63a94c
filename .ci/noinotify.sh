#!/bin/sh
# Runs a program where the kernel has no inotify instance to give: inotify_init fails with EMFILE.
#
#   go test -exec "$PWD/.ci/noinotify.sh" ./register/... ./cmd/...
#
# The limit belongs to a user namespace, so a fresh one is made for the program and the machine's own limit stays as it
# is. Inside, root is only root of that namespace: mounts and changes of owner fail. PLUGPOLL_NOINOTIFY tells the tests.
set -eu
export PLUGPOLL_NOINOTIFY=1
exec unshare --user --map-root-user sh -euc '
	echo 0 >/proc/sys/user/max_inotify_instances
	exec "$@"
' noinotify "$@"
