#!/usr/bin/env python3
"""Write a C++ file that compares src/abi with NVIDIA's headers.

Ours live in namespace maya::abi, NVIDIA's in the global one, so one translation unit can hold both. Every enumerator,
constant, struct size and field offset that our header spells out is asserted equal to NVIDIA's. Names that this version of
the headers does not have are listed in a comment, not checked: our declarations span several versions.

usage: generate.py OUR_HEADER... --nvidia HEADER... --include DIR... --out FILE [--alias OURS=THEIRS]... [--skip NAME]... [--grown NAME]...
"""
import argparse
import pathlib
import re


def strip_comments(text):
    return re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.S))


def our_text(header, root, seen):
    """The header with our own includes put in place, each once."""
    if header in seen:
        return ""
    seen.add(header)
    text = strip_comments((root / header).read_text())
    out = []
    for line in text.splitlines():
        include = re.match(r'#include "(abi/[^"]+)"', line)
        out.append(our_text(include.group(1), root, seen) if include else line)
    return "\n".join(out)


def body_at(text, brace):
    depth = 0
    for index in range(brace, len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return text[brace + 1 : index]
    raise SystemExit("unbalanced braces in our header")


def flat_fields(body):
    """Names of the direct members; nested anonymous aggregates count by their own name only."""
    flat, depth = [], 0
    for char in body:
        if char == "{":
            depth += 1
        if depth == 0:
            flat.append(char)
        if char == "}":
            depth -= 1
    fields = []
    for statement in "".join(flat).split(";"):
        statement = statement.strip()
        if not statement or statement.startswith(("static_assert", "#", "using")):
            continue
        callback = re.search(r"\(\s*\*\s*(\w+)\s*\)", statement)
        if callback:
            fields.append(callback.group(1))
            continue
        for part in statement.split(","):
            name = re.search(r"(\w+)\s*(\[[^\]]*\]\s*)*$", part.strip())
            if name and name.group(1) not in ("struct", "union", "enum"):
                fields.append(name.group(1))
    return fields


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headers", nargs="+")
    parser.add_argument("--root", required=True, help="our src folder")
    parser.add_argument("--nvidia", nargs="+", required=True)
    parser.add_argument("--include", nargs="+", required=True)
    parser.add_argument("--alias", nargs="*", default=[])
    parser.add_argument("--skip", nargs="*", default=[])
    parser.add_argument("--grown", nargs="*", default=[], help="structs that later versions extended at the end")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()

    aliases = dict(item.split("=") for item in args.alias)
    skip = set(args.skip)
    known = set()
    for folder in args.include:
        for path in pathlib.Path(folder).glob("*.h"):
            known.update(re.findall(r"\w+", strip_comments(path.read_text(errors="replace"))))

    text = our_text(args.headers[0], pathlib.Path(args.root), seen := set())
    for header in args.headers[1:]:
        text += our_text(header, pathlib.Path(args.root), seen)

    checks, absent = [], []

    def check(name, line):
        if name in skip:
            return
        (checks if name in known else absent).append(line if name in known else name)

    for match in re.finditer(r"\benum\s+(\w+)\s*:\s*\w+(?:\s\w+)*\s*\{", text):
        for enumerator in re.findall(r"(\w+)\s*=", body_at(text, match.end() - 1)):
            check(enumerator, f"SAME_VALUE({enumerator})")
    for name in re.findall(r"\bconstexpr\s+[\w ]+?\b(\w+)\s*=", text):
        check(name, f"SAME_VALUE({name})")
    for match in re.finditer(r"^(?:struct|union)\s+(?:alignas\(\d+\)\s+)?(\w+)\s*\{", text, flags=re.M):
        ours = match.group(1)
        theirs = aliases.get(ours, ours)
        if theirs == "-" or ours in skip:
            continue
        if theirs not in known:
            absent.append(ours)
            continue
        checks.append(f"{'FITS' if ours in args.grown else 'SAME_SIZE'}({ours}, {theirs})")
        for field in flat_fields(body_at(text, match.end() - 1)):
            if f"{ours}.{field}" in skip or field.startswith(("reserved", "pad")):
                continue
            checks.append(f"SAME_OFFSET({ours}, {theirs}, {field})")

    checks = list(dict.fromkeys(checks))  # a name may stand in both branches of an #if

    # Ours come first and their values are kept aside: NVIDIA defines some of the names as macros.
    lines = ['#include "abi/abi_check/same.h"']
    lines += [f'#include "{header}"' for header in args.headers]
    lines += [line.replace("SAME_VALUE", "OUR_VALUE") for line in checks if line.startswith("SAME_VALUE")]
    lines += [f"#include <{header}>" for header in args.nvidia]
    lines += checks
    lines += ["// not in these headers: " + " ".join(sorted(absent)), "int main() { return 0; }", ""]
    pathlib.Path(args.out).write_text("\n".join(lines))
    print(f"{len(checks)} checks, {len(absent)} names not in these headers: {' '.join(sorted(absent))}")


if __name__ == "__main__":
    main()
