#!/usr/bin/env python3
"""Change how functions are treated: treat.py LIBRARY manual|success|unsupported|value:N|data:BYTES FUNCTION..."""
import pathlib
import sys

from spec import bad_treatment, read_functions, write_functions


def main():
    if len(sys.argv) < 4 or bad_treatment(sys.argv[2]):
        raise SystemExit(__doc__)
    spec = pathlib.Path(__file__).resolve().parents[2] / "spec"
    library, treatment, names = sys.argv[1], sys.argv[2], set(sys.argv[3:])
    functions = read_functions(spec, library)
    unknown = names - {function.function for function in functions}
    if unknown:
        raise SystemExit(f"spec/{library}.csv has no {', '.join(sorted(unknown))}")
    for function in functions:
        if function.function in names:
            function.treatment = treatment
    write_functions(spec, library, functions)


if __name__ == "__main__":
    main()
