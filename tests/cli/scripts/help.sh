#!/usr/bin/env bash
# Every script tells what it is for: --help prints something to stdout, nothing to stderr, and succeeds.
set -u
cd "$(dirname "$0")/../../.." || exit 1
bad=0
for script in scripts/* .ci/run; do
  [ -f "$script" ] && [ -x "$script" ] || continue # data and what scripts include
  errors=$("$script" --help 2>&1 >/dev/null) || { echo "$script --help fails"; bad=1; }
  [ -z "$errors" ] || { echo "$script --help: $errors"; bad=1; }
  [ "$("$script" --help 2>/dev/null | wc -c)" -gt 40 ] || { echo "$script --help says nothing"; bad=1; }
done
exit $bad
