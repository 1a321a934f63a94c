#!/bin/sh
# Plants one bug after another in a copy of the module, and has the simulation find each with 100,000 inputs: a checker that finds nothing proves
# nothing. Run by `make bugs`. A patch that does not apply any more is a failure too: write it anew against the core as it is.
set -u
cd "$(dirname "$0")/../../.." || exit 1
here=$PWD
copy=$(mktemp -d) || exit 1
trap 'rm -rf "$copy"' EXIT INT TERM
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$copy" || exit 1
cd "$copy" || exit 1

simulate() { go test ./state -run '^TestSimulation$' -count=1 -failfast -events 10000 >out 2>&1; }

simulate || { cat out; echo 'the simulation fails without a bug' >&2; exit 1; }
missed=0
for bug in "$here"/state/testdata/bugs/*.patch; do
	name=$(basename "$bug" .patch)
	if ! patch -s -p1 <"$bug"; then
		echo "$name: the patch does not apply"
		missed=1
		exit 1
	fi
	if simulate; then
		echo "$name: NOT FOUND"
		missed=1
	elif found=$(grep -m1 -oE 'TestSimulation\$. -seed [0-9]+' out | grep -oE 'seed [0-9]+') && [ -n "$found" ]; then
		echo "$name: $found, $(grep -m1 -oE 'input [0-9]+: .*|it does not converge.*|something is left.*|.* was registered .*' out | cut -c1-140)"
	else
		sed -n 1,20p out
		echo "$name: the test failed otherwise"
		missed=1
	fi
	patch -s -R -p1 <"$bug" || exit 1
done
exit $missed
