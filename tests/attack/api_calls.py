"""Bad calls of every function of every emulated library, generated from spec/.

    maya run --no-predict --quiet -- python tests/attack/api_calls.py [--library NAME…] [--every N] [--json FILE]

Each parameter in turn gets what its type allows and no program should pass: null, a made-up handle, a destroyed one,
zero, negative, huge. The other parameters hold something plausible: a living handle, a small number, a buffer. A call
must return, within 20 seconds, one of the codes the library documents. Calls run in child processes, so that one that
crashes is counted and named and the rest goes on.

Pointers through which a library writes its result are null or good, never wild: nobody can check those. Pointers that
may be device memory (void *) are wild too.
"""

from __future__ import annotations

import argparse
import collections
import csv
import ctypes
import json
import mmap
import os
import pathlib
import resource
import signal
import struct
import sys
import tempfile

SPEC = pathlib.Path(__file__).resolve().parents[2] / "spec"
LIBRARIES = {  # the newest of each, and cuDNN 8
    "cudart": "libcudart.so.13", "cuda": "libcuda.so.1", "nvml": "libnvidia-ml.so.1", "cublas": "libcublas.so.13",
    "cublasLt": "libcublasLt.so.13", "cudnn": "libcudnn.so.9", "nccl": "libnccl.so.2", "cusparse": "libcusparse.so.12",
    "cusparseLt": "libcusparseLt.so.0", "cusolver": "libcusolver.so.12", "cufft": "libcufft.so.12", "curand": "libcurand.so.10",
    "cupti": "libcupti.so.13", "nvrtc": "libnvrtc.so.13", "nvjitlink": "libnvJitLink.so.13", "cufile": "libcufile.so.0",
    "nvshmem": "libnvshmem_host.so.3",
}
SECONDS, BYTES = 20, 1 << 30

# Codes each library documents, by the type its functions return. CUDA's own: see error_names().
DOCUMENTED = {
    "cublasStatus_t": {0, 1, 3, 7, 8, 11, 13, 14, 15, 16},
    "cudnnStatus_t": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008,
                      *range(2000, 2010), *range(3000, 3020), *range(4000, 4010), *range(5000, 5010)},
    "cusparseStatus_t": set(range(0, 12)),
    "cusolverStatus_t": set(range(0, 12)) | set(range(20, 27)),
    "cufftResult_t": set(range(0, 21)),
    "curandStatus": {0, *range(100, 107), 201, 202, 203, 204, 999},
    "ncclResult_t": set(range(0, 9)),
    "nvmlReturn_enum": {*range(0, 31), 999},
    "nvrtcResult": set(range(0, 15)),
    "nvJitLinkResult": set(range(0, 15)),
    "CUptiResult": {*range(0, 60), 999},
}

# End the process, or wait for a peer that is not there: right as documented, and no subject of this test.
LEFT_OUT = {"nvshmem_global_exit", "nvshmemx_hostlib_init_attr", "nvshmemi_init_thread", "cuCoredumpGenerate"}
# Communicators of more than one rank wait for the others.
RANKS = {"ncclCommInitRank", "ncclCommInitRankConfig", "ncclCommInitRankScalable", "ncclCommInitAll", "ncclCommGrow"}
# Structures that callers fill in: their pointer is data, not a handle.
DATA = ("MEMCPY", "PARAMS", "Params_st", "NodeParams", "Parms", "Config", "config", "Prop", "Attributes", "AttributeValue", "Desc_st", "DESCRIPTOR",
        "Properties", "Location", "Edge", "AccessDesc", "Handle_st", "uuid", "Resource_st", "Memory", "memory", "Utilization", "PciInfo", "FieldValue",
        "Info_st", "InfoV", "ResultInfo", "Perf", "tensorMap", "TensorMap", "Process", "ExecAffinity", "CreateParams")
# Opaque structures that the libraries hand out.
HANDLES = ("_st", "Context", "Struct", "Descr", "jInfo", "2Info", "Opaque_t", "ncclComm", "nvJitLink", "_nvrtcProgram", "cusolverDnParams",
           "ncclWindow_vidmem", "cusparseLtHandle_t")


def split(signature: str) -> tuple[str, list[str]]:
    result, body = signature.split("(", 1)
    body, parts, depth, current = body[: body.rindex(")")], [], 0, ""
    for c in body:
        depth += (c in "([{<") - (c in ")]}>")
        if c == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += c
    return result.strip(), [p for p in parts + [current.strip()] if p and p != "void"]


INTEGERS = {"int", "unsigned int", "long", "unsigned long", "long long", "unsigned long long", "short", "unsigned short", "char",
            "signed char", "unsigned char", "size_t", "bool"}
BY_VALUE = {"dim3": 12, "cudaExtent": 24, "cudaMemLocation": 8, "CUmemLocation_st": 8, "ncclUniqueId": 128, "cudaIpcMemHandle_st": 64,
            "cudaIpcEventHandle_st": 64, "CUipcMemHandle_st": 64, "CUipcEventHandle_st": 64, "float2": 8, "double2": 16, "__half": 2}


def kind_of(type_: str) -> str:
    plain = type_.replace("const ", "").replace("*const", "*").strip()
    if "(*" in type_:
        return "function"
    if plain.endswith("]") or plain.endswith("**") or plain.endswith("* *"):
        return "array"
    if plain.endswith("*"):
        pointee = plain[:-1].strip()
        if pointee in ("char",):
            return "text" if "const" in type_ else "buffer"
        if pointee == "void":
            return "address"
        if pointee in INTEGERS or pointee in ("float", "double") or pointee in BY_VALUE or pointee.endswith("_enum") or "bfloat" in pointee:
            return "buffer"
        is_handle = pointee.endswith(HANDLES) and not any(mark in pointee for mark in DATA)
        return "handle:" + pointee if is_handle else "buffer"
    if plain in BY_VALUE:
        return "struct:" + plain
    if plain in ("float", "double"):
        return plain
    if plain in INTEGERS:
        return "long" if "long" in plain or plain == "size_t" else "int"
    return "int"  # an enumeration


class Function:
    def __init__(self, library: str, name: str, signature: str, soname: str):
        self.library, self.name, self.soname = library, name, soname
        self.result, types = split(signature)
        self.types = types
        self.kinds = [kind_of(t) for t in types]
        if "Init_internal" in name:  # writes a descriptor into memory of the caller's
            self.kinds = ["buffer" if k.startswith("handle:") else k for k in self.kinds]


def functions(names: list[str]) -> list[Function]:
    found = []
    for library in names:
        for row in csv.DictReader((SPEC / f"{library}.csv").open()):
            if row["treatment"] == "manual" and row["signature"] and row["function"] not in LEFT_OUT:
                if LIBRARIES[library] in row["sonames"].split(";"):
                    found.append(Function(library, row["function"], row["signature"], LIBRARIES[library]))
    return found


class Process:
    """What a child needs for its calls: buffers, living and destroyed handles."""

    def __init__(self, all_functions: list[Function]):
        self.libraries: dict[str, ctypes.CDLL] = {}
        # Room for the largest count below of 16-byte numbers: a library may write as many as it was told there are.
        self.buffers = [ctypes.create_string_buffer(16 << 20) for _ in range(6)]
        self.next = 0
        self.noop = ctypes.CFUNCTYPE(None)(lambda: None)
        self.keep: list = []
        runtime = self.library("libcudart.so.13")
        pointer = ctypes.c_void_p()
        runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1 << 20))
        self.device = pointer.value or 0
        self.living: dict[str, int] = {}
        self.destroyed: dict[str, int] = {}
        makers = [f for f in all_functions if ("Create" in f.name or "create" in f.name or "Init" in f.name or "Load" in f.name)
                  and f.name not in RANKS]
        for _ in range(2):  # the second time for those that need a handle of the first
            for f in makers:
                self.make(f)

    def library(self, soname: str) -> ctypes.CDLL:
        if soname not in self.libraries:
            self.libraries[soname] = ctypes.CDLL(soname)
        return self.libraries[soname]

    def make(self, f: Function) -> None:
        outs = [i for i, t in enumerate(f.types) if t.replace(" ", "").endswith("**") and "const" not in t and "void" not in t and "char" not in t]
        if len(outs) != 1:
            return
        type_ = f.types[outs[0]].replace("*", "").strip()
        if type_ in self.destroyed:
            return
        place = ctypes.c_void_p()
        arguments = [ctypes.byref(place) if i == outs[0] else self.plausible(f, i) for i in range(len(f.kinds))]
        if self.entry(f)(*arguments) == 0 and place.value:
            # The first is destroyed again where a function for that is found by name, the second lives.
            if type_ not in self.living:
                self.living[type_] = place.value
            else:
                for word in ("Destroy", "destroy", "Free", "Unload"):
                    destroy = getattr(self.library(f.soname), f.name.replace("Create", word).replace("create", word).replace("Load", word), None)
                    if destroy is not None:
                        destroy(ctypes.c_void_p(place.value))
                        self.destroyed[type_] = place.value
                        break

    def entry(self, f: Function):
        entry = getattr(self.library(f.soname), f.name)
        entry.restype = ctypes.c_int
        return entry

    def buffer(self, fill: int = 0):
        self.next = (self.next + 1) % len(self.buffers)
        ctypes.memset(self.buffers[self.next], fill, 4096)
        return self.buffers[self.next]

    def plausible(self, f: Function, i: int):
        kind = f.kinds[i]
        if kind == "int":
            return ctypes.c_int(1)
        if kind == "long":
            return ctypes.c_long(1)
        if kind in ("float", "double"):
            return ctypes.c_float(1) if kind == "float" else ctypes.c_double(1)
        if kind.startswith("handle:"):
            type_ = kind[7:]
            return ctypes.c_void_p(self.living.get(type_, 0))
        if kind.startswith("struct:"):
            return self.structure(kind[7:], 0)
        if kind == "text":
            return ctypes.c_char_p(b"-arch=sm_90")
        if kind == "address":
            return ctypes.c_void_p(self.device)
        if kind == "function":
            return ctypes.cast(self.noop, ctypes.c_void_p)
        if kind == "array":
            return self.buffer()
        return self.buffer()

    def structure(self, name: str, fill: int):
        class Bytes(ctypes.Structure):
            _fields_ = [("bytes", (ctypes.c_double if name in ("double2",) else ctypes.c_float if name == "float2" else ctypes.c_char)
                         * (2 if name in ("float2", "double2") else BY_VALUE[name]))]

        value = Bytes()
        ctypes.memset(ctypes.byref(value), fill, ctypes.sizeof(value))
        return value

    def bad(self, f: Function, i: int) -> list[tuple[str, object]]:
        kind = f.kinds[i]
        huge = (1 << 31) - 1
        if kind == "int":
            values = [0, -1, 2, 77, 1 << 20, huge, -huge - 1]
            if f.name in RANKS:
                values = [0, -1, -huge - 1]
            return [(str(v), ctypes.c_int(v)) for v in values]
        if kind == "long":
            return [(str(v), ctypes.c_long(v)) for v in (0, -1, huge, 1 << 40, (1 << 63) - 1, -(1 << 63))]
        if kind == "float":
            return [(str(v), ctypes.c_float(v)) for v in (0.0, float("nan"), float("inf"))]
        if kind == "double":
            return [(str(v), ctypes.c_double(v)) for v in (0.0, float("nan"), float("inf"))]
        if kind.startswith("handle:"):
            type_ = kind[7:]
            values = [("null", 0), ("1", 1), ("made up", 0xDEADBEEF000), ("-1", (1 << 64) - 1), ("memory", ctypes.addressof(self.buffers[0]))]
            if type_ in self.destroyed:
                values.append(("destroyed", self.destroyed[type_]))
            others = [v for t, v in self.living.items() if t != type_]
            if others:
                values.append(("of another kind", others[hash(f.name) % len(others)]))
            if type_ in self.living:
                values.append(("beside", self.living[type_] + 8))
            return [(name, ctypes.c_void_p(v)) for name, v in values]
        if kind.startswith("struct:"):
            return [("ones", self.structure(kind[7:], 255))]
        if kind == "text":
            return [("null", ctypes.c_char_p(None)), ("empty", ctypes.c_char_p(b"")), ("long", ctypes.c_char_p(b"x" * 100000)),
                    ("escape", ctypes.c_char_p(b"\x1b]0;x\x07\xff"))]
        if kind == "address":
            return [("null", ctypes.c_void_p(0)), ("wild", ctypes.c_void_p(0xDEADBEEF000)), ("-1", ctypes.c_void_p((1 << 64) - 1)),
                    ("host", ctypes.c_void_p(ctypes.addressof(self.buffers[1])))]
        if kind == "function":
            return [("null", ctypes.c_void_p(0))]
        return [("null", ctypes.c_void_p(0)), ("ones", self.buffer(255))]


def cases(f: Function, process: Process):
    """(what, arguments) for each call of the function."""
    plain = [process.plausible(f, i) for i in range(len(f.kinds))]
    yield "all plausible", plain
    yield "all null", [value if not isinstance(value, (ctypes.c_void_p, ctypes.c_char_p)) and not hasattr(value, "raw") else ctypes.c_void_p(0)
                       for value in plain]
    for i in range(len(f.kinds)):
        for name, value in process.bad(f, i):
            arguments = [process.plausible(f, k) for k in range(len(f.kinds))]
            arguments[i] = value
            yield f"parameter {i + 1} ({f.types[i]}) {name}", arguments


def child(work: list[tuple[int, Function]], start: tuple[int, int], all_functions: list[Function], board: mmap.mmap, report: int) -> None:
    """Calls, noting each on the board before it is made; results go to the pipe."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    # What a wild count makes the library allocate counts; what it only reserves does not.
    process = Process(all_functions)
    names: dict[int, bool] = {}
    runtime = ctypes.CDLL("libcudart.so.13")  # apart from the one whose functions return numbers
    runtime.cudaGetErrorName.restype = ctypes.c_char_p

    def documented(f: Function, code: int) -> bool:
        if f.result in ("cudaError", "cudaError_enum"):
            if code not in names:
                names[code] = (runtime.cudaGetErrorName(code) or b"unrecognized").startswith(b"cudaE") or code == 0
            return names[code]
        return code in DOCUMENTED.get(f.result, {code})

    for index, f in work:
        if index < start[0]:
            continue
        for number, (what, arguments) in enumerate(cases(f, process)):
            if index == start[0] and number <= start[1]:
                continue
            board[:8] = struct.pack("ii", index, number)
            board[8:520] = what.encode()[:511].ljust(512, b"\0")
            signal.alarm(SECONDS)
            code = process.entry(f)(*arguments)
            signal.alarm(0)
            good = documented(f, code)
            os.write(report, struct.pack("iii?xxx", index, number, code, good))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    os.write(report, struct.pack("iii?xxx", -1, -1, memory >> 20, memory <= BYTES))
    os._exit(0)


def attack(work: list[tuple[int, Function]], all_functions: list[Function], findings: list[dict], codes: collections.Counter) -> int:
    start, calls = (-1, -1), 0
    by_index = dict(work)
    while True:
        board = mmap.mmap(-1, 4096)
        board[:8] = struct.pack("ii", -1, -1)
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(read)
                child(work, start, all_functions, board, write)
            except BaseException as error:  # whatever it is, it is told
                print(f"attack: {error!r}", file=sys.stderr)
            os._exit(97)
        os.close(write)
        data = bytearray()
        while part := os.read(read, 1 << 16):
            data += part
        os.close(read)
        _, status = os.waitpid(pid, 0)
        for index, number, code, good in struct.iter_unpack("iii?xxx", data[: len(data) // 16 * 16]):
            if index < 0:
                if not good:
                    findings.append({"kind": "memory", "function": "-", "what": f"{code} MiB"})
                continue
            calls += 1
            codes[good] += 1
            if not good:
                findings.append({"kind": "unknown code", "function": by_index[index].name, "what": f"case {number}: {code}"})
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
            return calls
        index, number = struct.unpack("ii", board[:8])
        if index < 0:
            findings.append({"kind": "start", "function": "-", "what": f"the child ended with status {status} before its first call"})
            return calls
        name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
        findings.append({"kind": "hang" if name == "SIGALRM" else "crash", "function": by_index[index].name,
                         "what": board[8:520].rstrip(b"\0").decode(errors="replace") + ": " + name})
        calls += 1
        start = (index, number)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", nargs="*", default=list(LIBRARIES))
    parser.add_argument("--every", type=int, default=1, help="each Nth function only")
    parser.add_argument("--function", nargs="*", default=[])
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if options.json:
        options.json = options.json.absolute()
    os.chdir(tempfile.mkdtemp(prefix="maya-calls-"))  # functions that write a file take any name
    everything = functions(options.library)
    chosen = [f for i, f in enumerate(everything) if (i % options.every == 0 and not options.function) or f.name in options.function]
    table, findings = [], []
    for library in options.library:
        own: list[dict] = []
        codes: collections.Counter = collections.Counter()
        work = [(i, f) for i, f in enumerate(f for f in chosen if f.library == library)]
        # Makers of this library's handles, and of what CUDA itself hands out.
        makers = [f for f in functions(["cudart", library])]
        calls = attack(work, makers, own, codes) if work else 0
        count = collections.Counter(f["kind"] for f in own)
        table.append((library, len(work), calls, count["crash"], count["hang"], count["unknown code"], count["memory"] + count["start"]))
        findings += [{"library": library, **f} for f in own]
        for f in own:
            print(f"  {f['kind']}: {f['function']}: {f['what']}", file=sys.stderr)
    print("library     functions     calls  crashes  hangs  unknown codes  other")
    for row in table + [("all", *(sum(r[k] for r in table) for k in range(1, 7)))]:
        print("{:<11} {:>9} {:>9} {:>8} {:>6} {:>14} {:>6}".format(*row))
    if options.json:
        options.json.write_text(json.dumps({"table": table, "findings": findings}, indent=1))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
