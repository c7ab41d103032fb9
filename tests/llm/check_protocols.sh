#!/usr/bin/env bash
# Runs check_protocols.py with the packages that it needs, in a virtual environment of the build.
#   tests/llm/check_protocols.sh BUILD_FOLDER
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
build=$(cd -- "$1" && pwd)
venv=$build/llm-venv

if ! cmp -s "$here/requirements.txt" "$venv/requirements.txt"; then
  python3 -m venv --clear "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
  cp "$here/requirements.txt" "$venv/requirements.txt"
fi
exec "$venv/bin/python" "$here/check_protocols.py" "$build/bin/commbench" "$build/tests/llm_ask"
