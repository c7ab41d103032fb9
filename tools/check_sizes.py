#!/usr/bin/env python3
"""Refuses files over 500 lines (tests: 700) and functions over 80 (device code: 200).

Usage: check_sizes.py [ROOT]. Exceptions are in tools/size_waivers.txt, one a line: a file or
file:function, the lines it may have, and the reason. A waiver that nothing needs is an offence.
"""

import pathlib
import re
import sys

FOLDERS = ("base", "tasks", "reference", "sandbox", "simulator", "metrics", "results", "harness",
           "runners", "search", "tests", "tools", "examples")
CPP = {".h", ".cc", ".cu", ".cuh"}
SCRIPTS = {".py", ".sh"}
IGNORED = "tests/attacks/"
MAX_FUNCTION_LINES = 80
MAX_DEVICE_FUNCTION_LINES = 200
MAX_FILE_LINES = 500
MAX_TEST_FILE_LINES = 700

NOISE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<raw>[^(\s]*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"|"""
    r"""(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*""",
    re.DOTALL | re.MULTILINE,
)
SCOPE = re.compile(r'\b(namespace|class|struct|union|enum)\b|extern\s*$')
NAME = re.compile(r"([~\w:]+|operator\s*\S+)\s*\(")


def blanked(text):
    """The text with comments, literals and directives blanked and every line kept."""
    return NOISE.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), text)


def functions(text):
    """(name, first line, lines, whether it is device code) of each function body."""
    code = blanked(text)
    head_start, depth, line = 0, 0, 1
    body = None
    for position, char in enumerate(code):
        if char == "\n":
            line += 1
        if char == "{":
            depth += 1
            head = code[head_start:position]
            opens_scope = SCOPE.search(head.split("(")[0]) is not None
            if body is None and not opens_scope and "(" in head and "=" not in head.split("(")[0]:
                name = NAME.search(head)
                first = line - head.lstrip().count("\n")
                device = "__global__" in head or "__device__" in head
                body = (name.group(1) if name else "?", first, depth, device)
            head_start = position + 1
        elif char == "}":
            if body is not None and body[2] == depth:
                yield body[0], body[1], line - body[1] + 1, body[3]
                body = None
            depth -= 1
            head_start = position + 1
        elif char == ";":
            head_start = position + 1


def read_waivers(root):
    path = root / "tools" / "size_waivers.txt"
    waivers = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.strip() and not line.startswith("#"):
            subject, lines, reason = line.split(None, 2)
            waivers[subject] = (int(lines), reason)
    return waivers


def measured(root):
    """(subject, where, lines, limit) of everything that has a limit."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix not in CPP | SCRIPTS or name.startswith(IGNORED):
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            is_test = "_test." in name or name.startswith("tests/")
            yield name, name, text.count("\n"), MAX_TEST_FILE_LINES if is_test else MAX_FILE_LINES
            if path.suffix not in CPP:
                continue
            for function, first, lines, device in functions(text):
                limit = MAX_DEVICE_FUNCTION_LINES if device else MAX_FUNCTION_LINES
                yield f"{name}:{function}", f"{name}:{first}: {function}", lines, limit


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    waivers = read_waivers(root)
    needed, failed = set(), False
    for subject, where, lines, limit in measured(root):
        if lines <= limit:
            continue
        waived, _ = waivers.get(subject, (0, ""))
        if subject in waivers:
            needed.add(subject)
        if lines > waived:
            print(f"{where}: {lines} lines; at most {waived or limit} (tools/size_waivers.txt)")
            failed = True
    for subject in sorted(set(waivers) - needed):
        print(f"tools/size_waivers.txt: {subject} needs no waiver")
        failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
