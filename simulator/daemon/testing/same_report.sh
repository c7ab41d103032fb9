#!/bin/bash
# Runs a program twice, the second time with delayed hosts, and compares all that the simulator
# reports, virtual times above all: same_report.sh SIMD RANKS PROGRAM
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for delays in 0 7 8; do
  "$1" exec --ranks "$2" --host-delays $delays --report "$folder/$delays" -- "$3" > /dev/null 2>&1
  code=$?
  [ $code -eq 77 ] && exit 77
  [ $code -eq 0 ] || { echo "exit code $code with delays $delays"; exit 1; }
done
diff "$folder/0" "$folder/7" && diff "$folder/0" "$folder/8"
