#!/usr/bin/env python3
"""Refuses an #include that goes against the table of folders in the architecture.

Usage: check_layers.py [ROOT]. Prints one line for each offence; exit code 1 when there is one.
"""

import pathlib
import re
import sys

# Folder: what it may include besides itself. The longest matching folder decides.
ALLOWED = {
    "base": set(),
    "tasks": {"base"},
    "sandbox": {"base"},
    "simulator": {"base"},
    # Shims are loaded into a candidate's process: no exceptions, no dependencies.
    "simulator/shims": {"simulator"},
    "metrics": {"base"},
    "results": {"base", "metrics"},
    "harness": {"base", "tasks", "sandbox", "simulator", "metrics", "results"},
    "harness/cli": {
        "base", "tasks", "sandbox", "simulator", "metrics", "results", "harness", "runners",
        "search",
    },
    "runners": {"base", "results"},
    "search": {"base", "tasks", "metrics", "results", "harness"},
    "tests": {
        "base", "tasks", "sandbox", "simulator", "metrics", "results", "harness", "runners",
        "search",
    },
}
# What candidates see and write: they include by the names that candidates use.
CANDIDATE_CODE = ("tasks/include/", "reference/", "examples/", "tests/attacks/", "tests/cuda/")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
SUFFIXES = {".h", ".cc", ".cu", ".cuh"}
# Tests of the shims run on the trusted side.
SHIM_TESTS = re.compile(r"^simulator/shims/(testing/|.*_test\.cc$)")


def owner(path):
    """The most specific folder of the table that holds a path."""
    parts = path.split("/")
    for length in range(len(parts) - 1, 0, -1):
        folder = "/".join(parts[:length])
        if folder in ALLOWED:
            return folder
    return None


def offence(path, included):
    """Why `path` may not include `included`, or None."""
    target = owner(included)
    if target is None:
        return f'"{included}" is not a path from the root of the tree'
    source = "simulator" if SHIM_TESTS.match(path) else owner(path)
    if target == "harness/cli" and source != "harness/cli":
        return "nothing may include harness/cli"
    top = target.split("/")[0]
    if source == target or top == source or top in ALLOWED[source]:
        return None
    if source.startswith(target + "/") and source != "simulator/shims":
        return None
    return f"{source} may not include {top}"


def source_files(root):
    """Relative names of the C++ and CUDA files below the table's folders."""
    for folder in sorted({name.split("/")[0] for name in ALLOWED}):
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in SUFFIXES and not name.startswith(CANDIDATE_CODE):
                yield name


def offences(root):
    for name in source_files(root):
        text = (root / name).read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            match = INCLUDE.match(line)
            why = offence(name, match.group(1)) if match else None
            if why:
                yield f"{name}:{number}: {why}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = list(offences(root))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
