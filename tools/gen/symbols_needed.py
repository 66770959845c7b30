#!/usr/bin/env python3
"""Check that every symbol that programs bind to is exported by the emulated library of that name and version.

usage: symbols_needed.py LIBRARY_DIR --list spec/needed_symbols.csv
       symbols_needed.py LIBRARY_DIR --site-packages DIR     every .so below DIR (a Python environment with torch)
"""
import argparse
import collections
import csv
import pathlib
import sys

import elf

from spec import read_libraries


def emulated(folder, spec):
    """SONAME → set of (symbol, version) offered; a thin library offers what stands behind it."""
    offers = {}
    libraries = read_libraries(spec)
    for library in libraries:
        path = folder / library.soname
        if not path.exists():
            raise SystemExit(f"{path} is not there; build the target maya_shims first")
        offers[library.soname] = {(symbol.name, symbol.version) for symbol in elf.read(path).symbols if symbol.defined}
    for library in libraries:
        if library.thin_over:
            offers[library.soname] |= offers[library.thin_over]
    return offers


def wanted_by_list(path):
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            yield row["soname"], row["symbol"], row["version"], row["used_by"]


def wanted_by_files(folder, offers):
    """Undefined symbols that carry one of our version nodes, or that are unversioned and only a library of ours in
    NEEDED can provide (its name is known to us)."""
    known = collections.defaultdict(set)
    for soname, symbols in offers.items():
        for name, _ in symbols:
            known[name].add(soname)
    for path in sorted(folder.rglob("*.so*")):
        if not path.is_file() or path.is_symlink() or not elf.is_elf(path):
            continue
        dynamic = elf.read(path)
        ours = [name for name in dynamic.needed if name in offers]
        for symbol in dynamic.symbols:
            if symbol.defined or symbol.weak:
                continue
            if symbol.file in offers:
                yield symbol.file, symbol.name, symbol.version, str(path.relative_to(folder))
            elif not symbol.version and ours:
                # Unversioned libraries of ours: the prefix says whose function it is.
                for soname, prefix in (("libnccl.so.2", "nccl"), ("libcuda.so.1", "cu"), ("libnvidia-ml.so.1", "nvml"),
                                       ("libcusparseLt.so.0", "cusparseLt"), ("libcufile.so.0", "cuFile")):
                    rest = symbol.name[len(prefix):]
                    if soname in ours and symbol.name.startswith(prefix) and rest[:1].isupper():
                        yield soname, symbol.name, "", str(path.relative_to(folder))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", type=pathlib.Path)
    parser.add_argument("--list", type=pathlib.Path)
    parser.add_argument("--site-packages", type=pathlib.Path)
    parser.add_argument("--spec", default=pathlib.Path(__file__).resolve().parents[2] / "spec")
    args = parser.parse_args()
    if not args.list and not args.site_packages:
        parser.error("give --list or --site-packages")

    offers = emulated(args.libraries, args.spec)
    wanted = wanted_by_list(args.list) if args.list else wanted_by_files(args.site_packages, offers)
    checked, missing = 0, collections.defaultdict(list)
    for soname, symbol, version, used_by in wanted:
        checked += 1
        if (symbol, version) not in offers.get(soname, ()):
            missing[(soname, symbol, version)].append(used_by)
    for (soname, symbol, version), users in sorted(missing.items()):
        print(f"{soname} does not export {symbol}{'@' + version if version else ''}, needed by {users[0]}"
              + (f" and {len(users) - 1} more" if len(users) > 1 else ""))
    print(f"{checked} needed symbols, {len(missing)} missing")
    if checked == 0:
        print("nothing was checked: is this the right folder?")
    return 1 if missing or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
