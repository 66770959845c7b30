#!/usr/bin/env python3
"""Derive spec/*.csv from an inventory of NVIDIA's libraries (see docs of the inventory: real_exports, abi_signatures,
api_usage as gzip CSV).

The spec is the source of truth: a row that exists keeps its treatment; only new functions get the default, which is
`manual` for what some package uses, `success` or `value:n` for the calls listed in HARMLESS, and `unsupported` for the
rest.

usage: import_inventory.py INVENTORY_DIR [--spec DIR] [--typedefs cudaTypedefs.h...]

--typedefs adds to spec/driver_versions.csv which CUDA version brought each form of a driver function. NVIDIA's
cudaTypedefs.h names them (PFN_<function>_v<version>); the n-th version of a function is its symbol with suffix _v<n>.
"""
import argparse
import collections
import csv
import gzip
import pathlib
import re
import sys

from spec import Function, read_functions, read_libraries, write_functions

SIGNATURE_LIBRARIES = {
    "cuda": ["driver"],
    "cublas": ["cublas(v1)", "cublasXt", "cublas"],
}

# Exports without a public signature are NVIDIA's internals; in these libraries they are part of what programs bind to.
KEEP_WITHOUT_SIGNATURE = {"cudart", "nvtx", "nvjitlink", "nvrtc", "cupti", "nccl", "cufft"}

# Calls that are right when they do nothing: no logging sink, no profiler and no tool is attached to the virtual device.
HARMLESS = [
    (r"cu(da)?Profiler(Start|Stop|Initialize)", "success"),
    (r"cublasLoggerConfigure|cublasSetLoggerCallback|cublasGetLoggerCallback", "success"),
    (
        r"cu(blasLt|sparse|sparseLt|solverDn)Logger(SetCallback|SetFile|OpenFile|SetLevel|SetMask|ForceDisable)",
        "success",
    ),
    (r"cudnnSetCallback", "success"),
    (r"cu(da)?CtxResetPersistingL2Cache", "success"),
    # Without a tool attached NVTX answers NVTX_NO_PUSH_POP_TRACKING.
    (r"nvtx(Domain)?Range(Push(A|W|Ex)|Pop)", "value:-2"),
    (r"nvtx\w+", "success"),
]

PER_THREAD = re.compile(r"_pt(sz|ds)$")


def rows(folder, name):
    with gzip.open(pathlib.Path(folder) / f"{name}.csv.gz", "rt", newline="") as file:
        yield from csv.DictReader(file)


def version_key(text):
    return [int(part) for part in re.findall(r"\d+", text)]


def signatures(inventory):
    """library → function → list of (version, signature), oldest first."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows(inventory, "abi_signatures"):
        found[row["library"]][row["function"]].append((version_key(row["version"]), row["signature"]))
    for functions in found.values():
        for versions in functions.values():
            versions.sort()
    return found


def signature_of(library, function, found):
    """Newest signature, and that of CUDA 12 where a runtime call changed under the same name."""
    names = [function, PER_THREAD.sub("", function), re.sub(r"_v\d+$", "", PER_THREAD.sub("", function))]
    for name in names:
        for source in SIGNATURE_LIBRARIES.get(library, [library]):
            versions = found[source].get(name)
            if versions:
                newest = versions[-1][1]
                twelve = [text for version, text in versions if version[0] == 12]
                changed = library == "cudart" and twelve and twelve[-1] != newest
                return newest, twelve[-1] if changed else ""
    return "", ""


def used_symbols(inventory):
    used = collections.defaultdict(set)
    for row in rows(inventory, "api_usage"):
        eleven = row["symbol_version"].endswith((".so.11", ".so.11.0", ".so.11.2")) and row["library"] not in (
            "cufft", "cusolver")
        if not eleven and row["version"] != "1.13.1":
            used["cuda" if row["library"] == "driver" else row["library"]].add(row["symbol"])
    return used


def driver_versions(spec, typedefs):
    """base name → sorted list of (since, symbol, per-thread symbol); written to and read from driver_versions.csv."""
    path = pathlib.Path(spec) / "driver_versions.csv"
    if typedefs:
        plain = collections.defaultdict(set)
        per_thread = collections.defaultdict(set)
        for header in typedefs:
            for base, since, suffix in re.findall(
                r"\*PFN_(cu\w+?)_v(\d+)(_pt(?:sz|ds))?\)", pathlib.Path(header).read_text()
            ):
                # The per-thread form of an old function came with 7.0 and carries that number, not the original's.
                if suffix:
                    per_thread[base].add((int(since), suffix))
                else:
                    plain[base].add(int(since))
        with open(path, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["function", "since", "symbol", "per_thread_symbol"])
            for base in sorted(plain):
                since = sorted(plain[base])
                for index, first in enumerate(since):
                    last = since[index + 1] if index + 1 < len(since) else float("inf")
                    symbol = base + (f"_v{index + 1}" if index else "")
                    suffix = next((text for at, text in per_thread[base] if first <= at < last), "")
                    writer.writerow([base, first, symbol, symbol + suffix if suffix else ""])
    if not path.exists():
        return {}
    table = collections.defaultdict(list)
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            table[row["function"]].append((int(row["since"]), row["symbol"], row["per_thread_symbol"]))
    return table


def asked_at_runtime(spec, versions):
    """Symbols behind the names that programs look up while running. A program of CUDA 12 or 13 may be given any form
    from the one current at 12.0 onwards."""
    asked = collections.defaultdict(set)
    with open(pathlib.Path(spec) / "runtime_lookups.csv", newline="") as file:
        for row in csv.DictReader(file):
            forms = versions.get(row["function"], []) if row["library"] == "cuda" else []
            current = max((since for since, _, _ in forms if since <= 12000), default=0)
            asked[row["library"]].update(symbol for since, symbol, _ in forms if since >= current)
            if not forms:
                asked[row["library"]].add(row["function"])
    return asked


def write_needed(inventory, spec, libraries):
    """spec/needed_symbols.csv: what released packages bind to, so that a test needs no wheels."""
    nodes = {library.version_node: library.soname for library in libraries if library.version_node}
    unversioned = {"driver": "libcuda.so.1", "nvml": "libnvidia-ml.so.1", "nccl": "libnccl.so.2",
                   "cusparseLt": "libcusparseLt.so.0", "cufile": "libcufile.so.0"}
    needed = collections.defaultdict(set)
    for row in rows(inventory, "api_usage"):
        version = row["symbol_version"]
        soname = nodes.get(version) if version else unversioned.get(row["library"])
        if soname:
            needed[(soname, row["symbol"], version)].add(f"{row['package']} {row['version']}")
    with open(pathlib.Path(spec) / "needed_symbols.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["soname", "symbol", "version", "used_by"])
        for (soname, symbol, version), users in sorted(needed.items()):
            newest = max((user for user in users if user.startswith("torch ")), key=version_key, default=min(users))
            writer.writerow([soname, symbol, version, newest])
    print(f"needed_symbols: {len(needed)}")
    return [(soname, symbol) for soname, symbol, _ in needed]


def default_treatment(function, used):
    for pattern, treatment in HARMLESS:
        if re.fullmatch(pattern, function) and not (function in used and function.startswith("nvtx")):
            return treatment
    return "manual" if function in used else "unsupported"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inventory")
    parser.add_argument("--spec", default=pathlib.Path(__file__).resolve().parents[2] / "spec")
    parser.add_argument("--typedefs", nargs="*", default=[])
    args = parser.parse_args()

    libraries = [library for library in read_libraries(args.spec) if not library.thin_over]
    sonames = {library.soname: library for library in libraries}
    exports = collections.defaultdict(lambda: collections.defaultdict(set))  # library → function → sonames
    for row in rows(args.inventory, "real_exports"):
        library = sonames.get(row["soname"])
        if library and row["symbol"] not in (row["symbol_version"], row["soname"], "_init", "_fini"):
            exports[library.library][row["symbol"]].add(row["soname"])

    # A package may bind to a symbol of a newer library than the inventory has looked into.
    for soname, symbol in write_needed(args.inventory, args.spec, libraries):
        exports[sonames[soname].library][symbol].add(soname)
    found = signatures(args.inventory)
    used = used_symbols(args.inventory)
    versions = driver_versions(args.spec, args.typedefs)
    for library, names in asked_at_runtime(args.spec, versions).items():
        used[library] |= names

    # No package brings the driver's own libraries, so their functions come from the headers.
    for forms in versions.values():
        for _, symbol, per_thread in forms:
            for name in filter(None, (symbol, per_thread)):
                exports["cuda"][name].add("libcuda.so.1")
    for library, source, soname in (("cuda", "driver", "libcuda.so.1"), ("nvml", "nvml", "libnvidia-ml.so.1")):
        for function, history in found[source].items():
            if history[-1][0][0] >= 12:
                exports[library][function].add(soname)
        for function in used[library]:
            exports[library][function].add(soname)
    for function in ("cuProfilerInitialize", "cuProfilerStart", "cuProfilerStop", "cuGetExportTable"):
        exports["cuda"][function].add("libcuda.so.1")

    for library in dict.fromkeys(entry.library for entry in libraries):
        known = {function.function: function for function in read_functions(args.spec, library)}
        functions = []
        for name, homes in exports[library].items():
            if name.startswith("_Z") and name not in used[library]:
                continue
            signature, signature_12 = signature_of(library, name, found)
            if not signature and library not in KEEP_WITHOUT_SIGNATURE | {"cuda"} and name not in used[library]:
                continue
            treatment = known[name].treatment if name in known else default_treatment(name, used[library])
            functions.append(Function(name, signature, signature_12, ";".join(sorted(homes)), treatment))
        names = {function.function for function in functions}
        functions += [function for name, function in known.items() if name not in names]
        write_functions(args.spec, library, functions)
        count = collections.Counter(function.treatment.split(":")[0] for function in functions)
        missing = sorted(used[library] - names - set(known))
        print(
            f"{library}: {len(functions)} functions, {dict(count)}"
            + (f", used but not exported: {missing}" if missing else "")
        )


if __name__ == "__main__":
    sys.exit(main())
