#!/usr/bin/env python3
"""Compiles every given header alone: a header must include what it needs.

Usage: check_headers.py ROOT HEADER... (names relative to ROOT). Prints the first error of each
header that does not stand alone; exit code 1 when there is one.
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys

# Included by candidates, which compile as C++17 with CUDA.
CANDIDATE_HEADERS = "tasks/include/"


def cuda_folder(root):
    candidates = [os.environ.get("CUDA_HOME"), str(root / ".cuda"), "/usr/local/cuda"]
    return next((c for c in candidates if c and os.path.exists(c + "/include/cuda.h")), None)


def command(root, header):
    standard = "c++17" if header.startswith(CANDIDATE_HEADERS) else "c++20"
    line = ["g++", f"-std={standard}", "-fsyntax-only", "-w", "-x", "c++",
            "-DFMT_SHARED", '-DCOMMBENCH_SOURCE_DIR="."', "-I", str(root), "-I", str(root / "tasks/include")]
    cuda = cuda_folder(root)
    if cuda:
        line += ["-isystem", cuda + "/include"]
    mpi = subprocess.run(["pkg-config", "--cflags", "ompi-c"], capture_output=True, text=True)
    return line + mpi.stdout.split() + ["-"]


def first_error(root, header):
    source = f'#include "{header}"\n'
    if header.startswith(CANDIDATE_HEADERS):
        source = f"#include <{header[len(CANDIDATE_HEADERS):]}>\n"
    done = subprocess.run(command(root, header), input=source, capture_output=True, text=True,
                          cwd=root)
    if done.returncode == 0:
        return None
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    return f"{header}: does not compile alone: {errors[0] if errors else done.stderr[:200]}"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    headers = sys.argv[2:]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = [p for p in pool.map(lambda h: first_error(root, h), headers) if p]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
