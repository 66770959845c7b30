"""maya calibrate: adapts the models to profiles of the user.

Reads PyTorch profiler traces (.json, .json.gz; with or without shapes), Nsight Systems SQLite exports (.sqlite) and
CSV files (a column `op`, its keys as `maya estimate --help` lists them, and measured_us / _ms / _ns). Compares them
with the models, prints the differences, and writes a calibration file for `maya run`, `maya predict` and `maya
estimate`. src/estimate/calibration.h describes its format.
"""
from __future__ import annotations

import argparse
import collections
import csv
import gzip
import io
import json
import math
import pathlib
import re
import sqlite3
import statistics
import subprocess
import sys
import zlib

from maya import MayaError, program

DTYPES = {"float": "f32", "double": "f64", "c10::Half": "f16", "c10::BFloat16": "bf16", "c10::Float8_e4m3fn": "f8e4m3",
          "c10::Float8_e5m2": "f8e5m2", "long int": "i64", "int": "i32", "bool": "bool", "unsigned char": "u8"}
SIZES = {
    "f64": 8,
    "f32": 4,
    "tf32": 4,
    "f16": 2,
    "bf16": 2,
    "f8e4m3": 1,
    "f8e5m2": 1,
    "i64": 8,
    "i32": 4,
    "bool": 1,
    "u8": 1,
}


class Sample:
    """One kind of call: its op in the form of the command line and of the calibration file, and its times in µs."""

    def __init__(self, family, words, text, exact=True):
        self.family, self.words, self.text, self.exact = family, words, text, exact
        self.times = []

    @property
    def median(self):
        return statistics.median(self.times)


MOST_BYTES = 4 << 30  # of an unpacked trace; a small file can unpack to any size
# What a file with unexpected content raises in the readers below.
DAMAGE = (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError, csv.Error,
          sqlite3.Error)


class Profile:
    def __init__(self, source):
        self.source = source
        self.gpu = None          # marketing name
        self.samples = {}        # key -> Sample
        self.kernels = 0
        self.time_us = 0.0
        self.used_us = 0.0
        self.shapes = False

    def add(self, family, words, text, time_us, exact=True):
        if not math.isfinite(time_us) or time_us <= 0:
            return
        sample = self.samples.setdefault((text, family), Sample(family, words, text, exact))
        sample.times.append(time_us)
        self.used_us += time_us


def product(values):
    return math.prod(values) if values else 0


def dims_of(arguments):
    dims = arguments.get("Input Dims") or arguments.get("Input dims") or []
    types = arguments.get("Input type") or []
    return [d if isinstance(d, list) else [] for d in dims], types


def gemm_sample(name, dims, types, kernels):
    """(family, words, text) of a matrix product, or None."""
    operands = {"aten::mm": (0, 1), "aten::addmm": (1, 2), "aten::bmm": (0, 1), "aten::baddbmm": (1, 2),
                "aten::_scaled_mm": (0, 1)}.get(name)
    if not operands or len(dims) <= operands[1]:
        return None
    a, b = dims[operands[0]], dims[operands[1]]
    if len(a) != len(b) or len(a) not in (2, 3) or a[-1] != b[-2]:
        return None
    batch = a[0] if len(a) == 3 else 1
    m, k, n = a[-2], a[-1], b[-1]
    if min(m, n, k, batch) <= 0:
        return None
    dtype = DTYPES.get(types[operands[0]] if len(types) > operands[0] else "float", "f32")
    compute = dtype
    if dtype == "f32" and any("tf32" in name_ or "s1688" in name_ or "tensorop_s" in name_ for name_, _ in kernels):
        compute = "tf32"
    out = "bf16" if dtype.startswith("f8") else dtype
    family = "gemm.f32" if compute in ("f32", "f64") else "gemm.tensor"
    words = dict(op="gemm", m=m, n=n, k=k, batch=batch, dtype=compute)
    text = f"gemm m={n} n={m} k={k}" + (f" batch={batch}" if batch > 1 else "") + \
           f" a={dtype} b={dtype} d={out} compute={compute}"
    return family, words, text


def conv_sample(name, dims, types, kernels):
    """Forward convolutions. Stride and padding are guessed if the trace does not have them, so the result is not
    exact."""
    if name not in ("aten::cudnn_convolution", "aten::_convolution", "aten::convolution") or len(dims) < 2:
        return None
    x, w = dims[0], dims[1]
    if len(x) != 4 or len(w) != 4 or x[1] != w[1]:
        return None
    return x, w, DTYPES.get(types[0] if types else "float", "f32")


POINTWISE = {
    "aten::add": 2,
    "aten::add_": 2,
    "aten::mul": 2,
    "aten::mul_": 2,
    "aten::sub": 2,
    "aten::div": 2,
    "aten::relu": 1,
    "aten::relu_": 1,
    "aten::clamp_min": 1,
    "aten::clamp_min_": 1,
    "aten::gelu": 1,
    "aten::threshold_backward": 2,
    "aten::sigmoid": 1,
    "aten::tanh": 1,
    "aten::silu": 1,
}


def pointwise_sample(name, dims, types, kernels):
    if name not in POINTWISE or len(kernels) != 1 or "elementwise" not in kernels[0][0]:
        return None
    tensors = [d for d in dims if d and product(d) > 1]
    if not tensors:
        return None
    elements = max(product(d) for d in tensors)
    if any(product(d) != elements for d in tensors):
        return None  # broadcasting
    dtype = DTYPES.get(types[0] if types else "float", "f32")
    size = SIZES.get(dtype, 4)
    read, written = elements * size * len(tensors), elements * size
    words = dict(op="pointwise", elements=elements, bytes_read=read, bytes_written=written, dtype=dtype)
    text = (
        f"pointwise elements={elements} bytes_read={read} bytes_written={written} inputs={len(tensors)} dtype={dtype}"
    )
    return "memory.pointwise", words, text


def norm_sample(name, dims, types, kernels):
    if name in ("aten::native_layer_norm",) and dims and len(dims) > 1 and dims[1]:
        cols = dims[1][0] if len(dims[1]) == 1 else dims[0][-1]
        rows = product(dims[0]) // max(1, cols)
        dtype = DTYPES.get(types[0] if types else "float", "f32")
        return ("memory.layer_norm_forward", dict(op="layer_norm", rows=rows, cols=cols, dtype=dtype),
                f"normalization kind=layer rows={rows} cols={cols} dtype={dtype}")
    if name in ("aten::_softmax", "aten::_log_softmax") and dims and dims[0]:
        rows, cols = product(dims[0][:-1]) or 1, dims[0][-1]
        dtype = DTYPES.get(types[0] if types else "float", "f32")
        return ("memory.softmax_forward", dict(op="softmax", rows=rows, cols=cols, dtype=dtype),
                f"softmax rows={rows} cols={cols} in={dtype} out={dtype}" + (" log=1" if "log" in name else ""))
    return None


def from_geometry(profile, kernel, grid, block, time_us):
    """Without shapes, the size of PyTorch's vectorized kernels follows from their launch: four elements per thread."""
    if "vectorized_elementwise_kernel<4" not in kernel or not grid:
        return
    elements = product(grid) * product(block) * 4
    inputs = (
        2
        if re.search(r"CUDAFunctor_add|BinaryFunctor|MulFunctor, at::detail::Array<char\*, 3>|Array<char\*, 3>", kernel)
        else 1
    )
    size = 2 if re.search(r"Half|BFloat16", kernel) else 4
    read, written = elements * size * inputs, elements * size
    profile.add(
        "memory.pointwise",
        dict(
            op="pointwise",
            elements=elements,
            bytes_read=read,
            bytes_written=written,
            dtype="f16" if size == 2 else "f32",
        ),
        f"pointwise elements={elements} bytes_read={read} bytes_written={written} inputs={inputs}",
        time_us,
        exact=False,
    )


def read_trace(path):
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as stream:
            text = stream.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise MayaError(f"{path}: larger than {MOST_BYTES >> 20} MiB; profile fewer steps")
        trace = json.loads(text)
    except (EOFError, zlib.error, gzip.BadGzipFile, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise MayaError(
            f"{path}: not a whole profiler trace ({error}); was the export cut off? export it again"
        ) from None
    events = trace.get("traceEvents") if isinstance(trace, dict) else trace
    if not isinstance(events, list):
        raise MayaError(f"{path}: no 'traceEvents'; expected a trace of torch.profiler (export_chrome_trace)")
    profile = Profile(path)
    properties = trace.get("deviceProperties", [{}]) if isinstance(trace, dict) else [{}]
    if properties:
        profile.gpu = properties[0].get("name")
    kernels, ops, launches = [], {}, {}
    for e in events:
        category = str(e.get("cat", "")).lower()
        arguments = e.get("args") or {}
        if category == "kernel":
            kernels.append(e)
        elif category in ("cpu_op", "operator"):
            key = arguments.get("External id")
            if key is not None:
                ops[key] = e
        elif category in ("cuda_runtime", "cuda_driver", "runtime"):
            if "External id" in arguments and "correlation" in arguments:
                launches[arguments["correlation"]] = arguments["External id"]
    if not kernels:
        raise MayaError(f"{path}: no GPU kernels in it; profile with ProfilerActivity.CUDA on a machine with a GPU")
    if (profile.gpu or "").startswith(("AMD", "Instinct")) or sum(k["name"].startswith("Cijk_") for k in kernels) > 5:
        raise MayaError(
            f"{path}: recorded on another vendor's GPU ({profile.gpu or 'ROCm kernels'}); Maya models NVIDIA GPUs"
        )
    calls = collections.OrderedDict()  # a call of an op: the kernels it started
    for k in kernels:
        arguments = k.get("args") or {}
        time_us = float(k.get("dur", 0))
        if k["name"].startswith("nccl"):
            continue
        profile.kernels += 1
        profile.time_us += time_us
        key = arguments.get("External id", arguments.get("external id", launches.get(arguments.get("correlation"))))
        if key in ops:
            calls.setdefault(key, []).append((k["name"], time_us))
            if (ops[key].get("args") or {}).get("Input Dims"):
                profile.shapes = True
                continue
        from_geometry(profile, k["name"], arguments.get("grid"), arguments.get("block"), time_us)
    for key, started in calls.items():
        op = ops[key]
        dims, types = dims_of(op.get("args") or {})
        if not any(dims):
            continue
        for reader in (gemm_sample, pointwise_sample, norm_sample):
            found = reader(op["name"], dims, types, started)
            if found:
                total = sum(t for _, t in started)
                if total > 0:
                    profile.add(*found, total)
                break
    return profile


def read_nsys(path):
    try:
        base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        tables = {row[0] for row in base.execute("select name from sqlite_master where type='table'")}
    except sqlite3.DatabaseError as error:
        raise MayaError(f"{path}: not an SQLite file ({error}); make one with `nsys export --type sqlite`") from None
    if "CUPTI_ACTIVITY_KIND_KERNEL" not in tables:
        raise MayaError(f"{path}: no GPU kernels in it; record with `nsys profile --trace cuda`")
    profile = Profile(path)
    if "TARGET_INFO_GPU" in tables:
        row = base.execute("select name from TARGET_INFO_GPU limit 1").fetchone()
        profile.gpu = row[0] if row else None
    query = ("select s.value, k.end - k.start, k.gridX, k.gridY, k.gridZ, k.blockX, k.blockY, k.blockZ from "
             "CUPTI_ACTIVITY_KIND_KERNEL k join StringIds s on s.id = k.demangledName")
    for name, ns, gx, gy, gz, bx, by, bz in base.execute(query):
        if name.startswith("nccl"):
            continue
        profile.kernels += 1
        profile.time_us += ns / 1e3
        from_geometry(profile, name, [gx, gy, gz], [bx, by, bz], ns / 1e3)
    return profile


def read_csv(path):
    profile = Profile(path)
    with open(path, newline="") as stream:
        reader = csv.DictReader(stream)
        if not reader.fieldnames or "op" not in reader.fieldnames:
            raise MayaError(f"{path}: no column 'op'; found {', '.join(reader.fieldnames or []) or 'nothing'}")
        unit = next(((c, f) for c in reader.fieldnames for suffix, f in (("_us", 1), ("_ms", 1e3), ("_ns", 1e-3))
                     if c.endswith(suffix) and not c.startswith(("predicted", "low", "high"))), None)
        if not unit:
            raise MayaError(f"{path}: no measured column; expected measured_us, measured_ms or measured_ns")
        for row in reader:
            words = {k: v for k, v in row.items() if k and k != unit[0] and v}
            try:
                time_us = float(row[unit[0]]) * unit[1]
            except (TypeError, ValueError):
                continue
            gpu = words.pop("gpu", None)
            profile.gpu = profile.gpu or gpu
            profile.kernels += 1
            profile.time_us += time_us
            profile.add(row["op"], words, json.dumps(words, sort_keys=True), time_us, exact=False)
    return profile


def read(path):
    path = pathlib.Path(path)
    if not path.exists():
        raise MayaError(f"{path}: no such file")
    if not path.is_file():
        raise MayaError(f"{path}: it is not a regular file")
    name = path.name.lower()
    readers = {(".json", ".json.gz"): read_trace, (".sqlite", ".db", ".sqlite3"): read_nsys, (".csv",): read_csv}
    for endings, reader in readers.items():
        if not name.endswith(endings):
            continue
        try:
            return reader(path)
        except DAMAGE as problem:
            raise MayaError(f"{path}: damaged ({type(problem).__name__}: {problem}); export it again") from None
    raise MayaError(f"{path}: expected a PyTorch trace (.json, .json.gz), an Nsight Systems export (.sqlite) or a .csv")


def catalogue_name(marketing):
    """The name in the catalogue of a GPU, by the name that its driver reports."""
    gpus = json.loads(subprocess.run([program(), "gpus", "--json"], capture_output=True, text=True, check=True).stdout)
    gpus = gpus.get("gpus", gpus) if isinstance(gpus, dict) else gpus
    names = [g["name"] if isinstance(g, dict) else g for g in gpus]
    if marketing in names:
        return marketing
    for gpu in gpus:
        if isinstance(gpu, dict) and gpu.get("marketing") == marketing:
            return gpu["name"]
    known = {"Tesla V100-DGXS-32GB": "v100-sxm2-32gb", "Tesla V100-SXM2-32GB": "v100-sxm2-32gb",
             "Tesla V100-SXM2-16GB": "v100-sxm2-16gb", "NVIDIA A100-PG509-200": "a100-40gb-sxm"}
    return known.get(marketing)


def predict(samples, gpu, calibration=None):
    """Predicted microseconds (`maya estimate --csv`); None for rows that could not be read or were flagged."""
    keys = sorted({k for s in samples for k in s.words if k != "op"})
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["op", *keys, "measured_us"])
    for s in samples:
        writer.writerow([s.words["op"], *[s.words.get(k, "") for k in keys], repr(s.median)])
    command = [program(), "estimate", "--csv", "-", "--gpu", gpu]
    if calibration:
        command += ["--calibration", str(calibration)]
    done = subprocess.run(command, input=text.getvalue(), capture_output=True, text=True)
    if done.returncode:
        raise MayaError(done.stderr.strip().splitlines()[-1])
    out = []
    for row in csv.DictReader(io.StringIO(done.stdout)):
        out.append(
            float(row["predicted_us"]) if row["predicted_us"] and "check the unit" not in row["warning"] else None
        )
    return out


FAMILY_OF_WORD = {
    "gemm": "gemm.tensor",
    "linear": "gemm.tensor",
    "bmm": "gemm.tensor",
    "conv": "conv.tensor",
    "attention": "attention",
    "softmax": "memory.softmax_forward",
    "layer_norm": "memory.layer_norm_forward",
    "rms_norm": "memory.rms_norm_forward",
    "pointwise": "memory.pointwise",
    "add": "memory.pointwise",
    "mul": "memory.pointwise",
    "copy": "transfer",
}


def learn(samples, predicted, least=5):
    """Per family: the factor that removes the model's bias, its spread, and the error before and after
    (cross-validated)."""
    families = collections.defaultdict(list)
    for sample, us in zip(samples, predicted):
        if us and sample.median > 0:
            family = sample.family
            if family in FAMILY_OF_WORD:
                family = FAMILY_OF_WORD[family]
                if family == "gemm.tensor" and sample.words.get("dtype") in ("f32", "float32", "fp32"):
                    family = "gemm.f32"
            families[family].append((math.log(sample.median / us), sample.median * len(sample.times)))
    out = {}
    for family, rows in sorted(families.items()):
        logs = [r for r, _ in rows]
        weight = sum(w for _, w in rows)
        before = sum(abs(math.exp(-r) - 1) * w for r, w in rows) / weight
        if len(rows) < least:
            out[family] = dict(rows=len(rows), before=before, factor=None)
            continue
        # The middle by time: what matters in the user's job counts most.
        ordered = sorted(rows)
        total, factor = 0.0, 0.0
        for r, w in ordered:
            total += w
            if total >= weight / 2:
                factor = r
                break
        after = 0.0
        for half in (0, 1):
            rest = sorted(rows[i][0] for i in range(len(rows)) if i % 2 != half)
            middle = statistics.median(rest)
            after += sum(abs(math.exp(middle - r) - 1) * w for i, (r, w) in enumerate(rows) if i % 2 == half)
        spread = sorted(r - factor for r in logs)
        low = math.exp(spread[int(0.1 * (len(spread) - 1))])
        high = math.exp(spread[math.ceil(0.9 * (len(spread) - 1))])
        after /= weight
        if after >= before:  # one factor does not help this family: leave the model as it is
            out[family] = dict(rows=len(rows), before=before, after=after, factor=None)
            continue
        out[family] = dict(rows=len(rows), before=before, after=after, factor=min(10.0, max(0.1, math.exp(factor))),
                           low=min(low, 0.98), high=max(high, 1.02))
    return out


def write(path, gpu, sources, samples, learned, exact):
    lines = ["maya-calibration 1", f"gpu {gpu}"]
    lines += [f"source {pathlib.Path(s).name}" for s in sources]
    for family, l in learned.items():
        if l.get("factor"):
            lines.append(f"scale {family} {l['factor']:.4f} {l['low']:.3f} {l['high']:.3f} {l['rows']}")
    for s in samples if exact else []:
        if not s.exact or len(s.times) < 3:
            continue
        times = sorted(s.times)
        low, high = times[int(0.1 * (len(times) - 1))], times[math.ceil(0.9 * (len(times) - 1))]
        lines.append(f"op {s.median * 1e3:.0f} {low * 1e3:.0f} {high * 1e3:.0f} {len(times)} {s.text}")
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


def show(learned):
    print(f"{'family':28s} {'ops':>5s} {'before':>8s} {'after':>8s}  factor")
    for family, l in learned.items():
        after = f"{100 * l['after']:7.1f}%" if "after" in l else "few rows"
        factor = f"{l['factor']:.3f}" if l["factor"] else "none"
        print(f"{family:28s} {l['rows']:5d} {100 * l['before']:7.1f}% {after:>8s}  {factor}")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="maya calibrate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profiles", nargs="+", help="traces, SQLite exports, CSV files of one kind of GPU")
    parser.add_argument("--gpu", help="name in the catalogue; default: the GPU of the profile")
    parser.add_argument("--out", default="maya.calibration")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    try:
        profiles = [read(p) for p in options.profiles]
        marketing = next((p.gpu for p in profiles if p.gpu), None)
        gpu = options.gpu or (catalogue_name(marketing) if marketing else None)
        if not gpu:
            raise MayaError(f"the GPU of the profile, '{marketing}', is not in the catalogue; name one with --gpu "
                            "(see `maya gpus`), or add a TOML file with its data sheet to the catalogue")
        merged = {}
        for p in profiles:
            for key, sample in p.samples.items():
                merged.setdefault(
                    key, Sample(sample.family, sample.words, sample.text, sample.exact)
                ).times += sample.times
        samples = list(merged.values())
        if not samples:
            raise MayaError("nothing to learn: no kernel could be tied to an op; profile with record_shapes=True")
        learned = learn(samples, predict(samples, gpu))
        write(options.out, gpu, options.profiles, samples, learned, exact=True)
    except MayaError as error:
        print(f"maya: {error}", file=sys.stderr)
        return 1
    kernels = sum(p.kernels for p in profiles)
    used = sum(p.used_us for p in profiles) / max(1e-9, sum(p.time_us for p in profiles))
    shapes = all(p.shapes for p in profiles)
    result = dict(gpu=gpu, kernels=kernels, time_used=used, shapes=shapes, families=learned,
                  exact=sum(s.exact and len(s.times) >= 3 for s in samples), out=options.out)
    if options.json:
        print(json.dumps(result, indent=2))
        return 0
    print(
        f"{gpu}: {kernels} kernels, {100 * used:.0f} % of their time tied to ops"
        + ("" if shapes else " (no shapes: sizes from launch grids only)")
    )
    show(learned)
    print(f"{result['exact']} ops measured exactly; wrote {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
