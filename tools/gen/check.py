#!/usr/bin/env python3
"""Hold spec/ and src/shim together: a function is `manual` in the spec if and only if a body defines it.

A generated stub is a weak symbol; a body makes it strong. --fix marks functions that have a body as manual.

usage: check.py LIBRARY_DIR [--spec DIR] [--library NAME...] [--count] [--fix]
"""
import argparse
import collections
import pathlib
import sys

import elf

from spec import read_functions, read_libraries, write_functions


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", type=pathlib.Path)
    parser.add_argument("--spec", default=pathlib.Path(__file__).resolve().parents[2] / "spec")
    parser.add_argument("--library", nargs="*", help="only these libraries")
    parser.add_argument("--count", action="store_true", help="print numbers, not names")
    parser.add_argument("--fix", action="store_true", help="mark functions that have a body as manual")
    args = parser.parse_args()

    faults = 0
    unlisted = collections.defaultdict(set)
    for library in read_libraries(args.spec):
        if library.thin_over or (args.library and library.library not in args.library):
            continue
        path = args.libraries / library.soname
        if not path.exists():
            print(f"{library.soname}: not built in {args.libraries}; build the target maya_shims first")
            faults += 1
            continue
        strong = {symbol.name for symbol in elf.read(path).symbols if symbol.defined and not symbol.weak}
        functions = [function for function in read_functions(args.spec, library.library)
                     if library.soname in function.sonames.split(";")]
        manual = [function.function for function in functions if function.treatment == "manual"]
        missing = [name for name in manual if name not in strong]
        extra = [
            function.function
            for function in functions
            if function.treatment != "manual" and function.function in strong
        ]
        unlisted[library.library].update(extra)
        faults += len(missing) + (0 if args.fix else len(extra))
        if missing or args.count:
            print(f"{library.soname}: {len(missing)} of {len(manual)} manual functions have no body"
                  + ("" if args.count else ": " + " ".join(missing)))
        if extra and not args.fix:
            print(
                f"{library.soname}: {len(extra)} bodies that spec/{library.library}.csv does not call manual "
                "(check.py --fix)"
                + ("" if args.count else ": " + " ".join(extra))
            )
    if args.fix:
        for library, names in unlisted.items():
            functions = read_functions(args.spec, library)
            for function in functions:
                if function.function in names:
                    function.treatment = "manual"
            if names:
                write_functions(args.spec, library, functions)
                print(f"spec/{library}.csv: {len(names)} functions marked manual")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
