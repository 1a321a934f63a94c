#!/bin/sh
# Checks a filesystem for .ci/real.sh and .ci/uml-inside.sh.
#
#   .ci/check-line.sh NAME PLUGPOLL DIR
#
# Prints what `plugpoll check --fs DIR` has seen of rules that do not hold, and a line of a table, as "check: | …". That some do not hold is no failure.
text=$("$2" check --fs "$3" 2>&1)
status=$?
[ $status -le 1 ] && printf '%s\n' "$text" | awk -v name="$1" '
	$2 == "holds" { holds++ }
	$2 == "skipped" { skipped = skipped " " $1 }
	$2 == "BROKEN" { broken = broken " " $1 }
	/ is broken: |^ +Seen: / { print }
	END {
		if (!holds && broken == "") exit 1
		printf "check: | %s | %d |%s |%s |\n", name, holds, broken, skipped
	}' || {
	printf '%s\n' "$text"
	exit 1
}
