#!/usr/bin/env python3
"""Write what the build needs from spec/: entry points, version scripts, the driver's table of versions.

usage: generate.py stubs SONAME --out DIR [--spec DIR]      DIR/stubs.cpp and DIR/version.map of one library
       generate.py entry-points --out FILE [--spec DIR]     the table behind cuGetProcAddress
       generate.py cmake --out FILE [--spec DIR]            libraries.csv as CMake lists
"""
import argparse
import csv
import pathlib
import sys

from spec import bad_treatment, read_functions, read_libraries

INTEGERS = {
    "int", "long", "long long", "short", "char", "signed char", "unsigned int", "unsigned long", "unsigned long long",
    "unsigned short", "unsigned char",
}
PAIRS = {"float2": "maya::shim::FloatPair", "double2": "maya::shim::DoublePair"}
# Two 16-bit floats travel like an integer of their size on the host side of these libraries.
HALVES = {"__half", "__nv_bfloat16"}


def write_if_changed(path, text):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def stub(function, library):
    """One macro use; see src/shim/stub.h for what it expands to."""
    kind = "UNSUPPORTED" if function.treatment in ("manual", "unsupported") else "HARMLESS"
    returns = function.signature_for(library).split("(", 1)[0].strip() or library.status_type or "int"
    harmless = function.treatment.split(":")[1] if ":" in function.treatment else library.success
    value = harmless if kind == "HARMLESS" else library.not_supported
    name = function.function
    if function.treatment.startswith("data:"):
        return f"MAYA_DATA({name}, {harmless})"
    if returns == "void":
        return f"MAYA_{kind}_VOID({name})"
    if returns.endswith("*"):
        return f"MAYA_{kind}({name}, long, (0))"
    if returns in ("float", "double"):
        return f"MAYA_{kind}({name}, {returns}, (0))"
    if returns in PAIRS:
        return f"MAYA_{kind}({name}, {PAIRS[returns]}, {{}})"
    if returns == library.status_type:
        # As wide as a register: a status may be an enum or, in cuFile, a struct of two ints.
        return f"MAYA_{kind}({name}, long, ({value}))"
    if returns in INTEGERS | HALVES or returns.startswith(("cusparse", "cusolver", "cudnn")):
        return f"MAYA_{kind}({name}, long, ({harmless if ':' in function.treatment else 0}))"
    if returns == "cudaChannelFormatDesc" and kind != "HARMLESS":
        return f"MAYA_{kind}_STRUCT({name})"
    raise SystemExit(f"spec/{library.library}.csv: {name} returns '{returns}', which generate.py does not know; "
                     "add it to INTEGERS, PAIRS or the struct case")


def stubs(spec, soname, out):
    library = next((entry for entry in read_libraries(spec) if entry.soname == soname), None)
    if library is None:
        raise SystemExit(f"spec/libraries.csv has no SONAME '{soname}'")
    functions = [] if library.thin_over else [
        function for function in read_functions(spec, library.library) if soname in function.sonames.split(";")
    ]
    for function in functions:
        if bad_treatment(function.treatment):
            raise SystemExit(
                f"spec/{library.library}.csv: {function.function}: '{function.treatment}' is not a treatment; "
                "expected manual, success, unsupported, value:<n> or data:<bytes>"
            )
    marker = "maya_emulates_" + "".join(c if c.isalnum() else "_" for c in soname)
    lines = [f"// Generated from spec/{library.library}.csv for {soname}.",
             f'#define MAYA_SHIM_LIBRARY "{library.library}"', '#include "shim/stub.h"', "",
             f"MAYA_HARMLESS({marker}, int, (1))"]
    lines += [stub(function, library) for function in functions]
    write_if_changed(pathlib.Path(out) / "stubs.cpp", "\n".join(lines) + "\n")

    names = [marker] + [function.function for function in functions]
    script = [f"{library.version_node} {{".lstrip(), "  global:"]
    script += [f"    {name};" for name in names]
    script += ["  local: *;", "};"]
    write_if_changed(pathlib.Path(out) / "version.map", "\n".join(script) + "\n")


def entry_points(spec, out):
    lines = [
        "// Generated from spec/driver_versions.csv. MAYA_DRIVER_ENTRY(function, since, symbol, per_thread_symbol):",
        "// `symbol` is what a program gets that asks for `function` with a CUDA version of at least `since`, newest "
        "first.",
    ]
    known = {function.function for function in read_functions(spec, "cuda")}
    with open(pathlib.Path(spec) / "driver_versions.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["symbol"] in known]
    rows.sort(key=lambda row: (row["function"], -int(row["since"])))
    for row in rows:
        per_thread = row["per_thread_symbol"] or row["symbol"]
        lines.append(f"MAYA_DRIVER_ENTRY({row['function']}, {row['since']}, {row['symbol']}, {per_thread})")
    write_if_changed(out, "\n".join(lines) + "\n")


def cmake(spec, out):
    lines = ["# Generated from spec/libraries.csv."]
    libraries = read_libraries(spec)
    for library in dict.fromkeys(entry.library for entry in libraries):
        entries = [entry for entry in libraries if entry.library == library]
        lines.append(f"set(MAYA_SHIM_{library}_SONAMES {' '.join(entry.soname for entry in entries)})")
    for entry in libraries:
        major = {"any": "0"}.get(entry.cuda_major, entry.cuda_major)
        definitions = [f"MAYA_CUDA_MAJOR={major}"] if major != "0" else []
        definitions += entry.definitions.split(";") if entry.definitions else []
        lines.append(f'set(MAYA_SHIM_{entry.soname}_DEFINITIONS {" ".join(definitions)})')
        lines.append(f'set(MAYA_SHIM_{entry.soname}_THIN_OVER "{entry.thin_over or ""}")')
        lines.append(f'set(MAYA_SHIM_{entry.soname}_ALIASES {entry.aliases.replace(";", " ")})')
    write_if_changed(out, "\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["stubs", "entry-points", "cmake"])
    parser.add_argument("soname", nargs="?")
    parser.add_argument("--out", required=True)
    parser.add_argument("--spec", default=pathlib.Path(__file__).resolve().parents[2] / "spec")
    args = parser.parse_args()
    if args.what == "stubs":
        if not args.soname:
            parser.error("stubs needs a SONAME")
        stubs(args.spec, args.soname, args.out)
    elif args.what == "entry-points":
        entry_points(args.spec, args.out)
    else:
        cmake(args.spec, args.out)


if __name__ == "__main__":
    sys.exit(main())
