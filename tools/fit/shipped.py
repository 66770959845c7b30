"""The shipped C++ models, called from Python: what is fitted is what runs."""
import ctypes
import hashlib
import os
import pathlib
import subprocess
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ["estimate/chip.cpp", "estimate/power.cpp", "estimate/model_file.cpp", "estimate/gemm_model.cpp",
           "estimate/memory_model.cpp", "estimate/memory_ops.cpp", "estimate/attention_model.cpp",
           "estimate/conv_model.cpp", "estimate/forest.cpp", "estimate/trees.cpp",
           "estimate/question.cpp", "estimate/routing.cpp", "estimate/learned_model.cpp", "estimate/calibration.cpp",
           "estimate/models.cpp", "estimate/fit_api.cpp",
           "base/files.cpp", "op/op.cpp", "op/dtype.cpp", "op/enum_names.cpp", "op/text.cpp"]
DTYPES = ["unknown", "f64", "f32", "tf32", "f16", "bf16", "f8e4m3", "f8e5m2", "f4", "i64", "i32",
          "i16", "i8", "u8", "boolean", "c64", "c128"]
_double = ctypes.POINTER(ctypes.c_double)


def _build():
    digest = hashlib.sha256(" ".join(SOURCES).encode())
    folders = ("src/estimate", "src/op", "src/base", "include/maya")
    for path in sorted(p for folder in folders for end in ("h", "cpp") for p in (ROOT / folder).glob(f"*.{end}")):
        digest.update(path.read_bytes())
    target = pathlib.Path(tempfile.gettempdir()) / f"maya-fit-{os.getuid()}" / f"{digest.hexdigest()[:16]}.so"
    if not target.exists():
        target.parent.mkdir(exist_ok=True)
        sources = [str(ROOT / "src" / s) for s in SOURCES]
        # -ffp-contract=off: the same rounding on every machine, so that fits reproduce bit for bit.
        command = [os.environ.get("CXX", "g++"), "-std=c++20", "-O2", "-ffp-contract=off", "-shared", "-fPIC",
                   "-I", str(ROOT / "src"), "-I", str(ROOT / "include"), *sources, "-o", str(target) + ".new"]
        subprocess.run(command, check=True)
        os.replace(str(target) + ".new", target)
    return ctypes.CDLL(str(target))


def _boards():
    """The sections [chip SCOPE] of first_principles.model."""
    out, values = {}, None
    for line in (ROOT / "catalog/models/first_principles.model").read_text().splitlines():
        words = line.split("#")[0].split()
        if words and words[0].startswith("["):
            values = out.setdefault(words[1].rstrip("]") if len(words) > 1 else "", {}) if words[0].rstrip("]") == "[chip" else None
        elif values is not None and len(words) == 2:
            values[words[0]] = float(words[1])
    return out


_lib = _build()
_board = _boards()
_lib.fit_chip.restype = ctypes.c_void_p
_lib.fit_ops.restype = ctypes.c_void_p
_lib.fit_models.restype = ctypes.c_void_p


def _array(values):
    return np.ascontiguousarray(values, dtype=np.float64)


def _pointer(array):
    return array.ctypes.data_as(_double)


class Chip:
    def __init__(self, sheet):
        self.sheet = sheet
        self.name, self.architecture = sheet["name"], sheet["architecture"]
        self.scope = f'{sheet["architecture"]}-{sheet["capability_major"]}.{sheet["capability_minor"]}'
        peaks = _array([sheet["peak_tflops"].get(d, 0) for d in DTYPES])
        power = defaults("power")
        for scope in ("", self.architecture, self.scope, self.name):
            power.update(_board.get(scope, {}))
        self.handle = self._make(sheet, peaks, _pointer(_array(list(power.values()))))
        self.sheet_handle = self._make(sheet, peaks, None)  # for Models, which look up the board themselves

    @staticmethod
    def _make(sheet, peaks, power):
        return ctypes.c_void_p(_lib.fit_chip(
            sheet["name"].encode(), sheet["architecture"].encode(), sheet["capability_major"],
            sheet["capability_minor"], sheet["sms"], ctypes.c_double(sheet["boost_clock_mhz"]),
            ctypes.c_double(sheet.get("sustained_clock_mhz", 0)), ctypes.c_double(sheet["memory_gbps"]),
            ctypes.c_double(sheet["l2_bytes"]), ctypes.c_double(sheet.get("l2_gbps", 0)),
            ctypes.c_double(sheet.get("tdp_watts", 0)), _pointer(peaks), power))


class Ops:
    """Ops written as text ("gemm m=… n=…"), parsed once; one kernel's name for all, or one each."""

    def __init__(self, texts, name=""):
        self.count = len(texts)
        names = [name] * self.count if isinstance(name, str) else name
        raw = (ctypes.c_char_p * self.count)(*[t.encode() for t in texts])
        named = (ctypes.c_char_p * self.count)(*[n.encode() for n in names])
        self.handle = _lib.fit_ops(raw, named, self.count)
        if not self.handle:
            raise ValueError("an op could not be parsed")
        self.handle = ctypes.c_void_p(self.handle)

    def __del__(self):
        if getattr(self, "handle", None):
            _lib.fit_free_ops(self.handle)


def defaults(family):
    function = getattr(_lib, f"fit_{family}_names")
    function.restype = ctypes.c_char_p
    values = np.zeros(64)
    names = function(_pointer(values)).decode().split()
    return dict(zip(names, values[: len(names)].tolist()))


def evaluate(family, chip, ops, params, features=False, **others):
    """Nanoseconds (and features) of every op with these parameters."""
    ns = np.empty(ops.count)
    values = _array(list({**defaults(family), **params}.values()))
    width = getattr(_lib, f"fit_{family}_feature_count")() if family != "attention" else 0
    table = np.empty((ops.count, width)) if features else None
    if family == "attention":
        _lib.fit_attention(chip.handle, ops.handle, _pointer(values), _pointer(ns))
    elif family == "conv":
        gemm = _array(list({**defaults("gemm"), **others["gemm"]}.values()))
        memory = _array(list({**defaults("memory"), **others["memory"]}.values()))
        _lib.fit_conv(chip.handle, ops.handle, _pointer(values), _pointer(gemm), _pointer(memory), _pointer(ns),
                      _pointer(table) if features else None)
    else:
        getattr(_lib, f"fit_{family}")(chip.handle, ops.handle, _pointer(values), _pointer(ns),
                                       _pointer(table) if features else None)
    return (ns, table) if features else ns


_lib.fit_learned_name.restype = ctypes.c_char_p


def learned_names():
    names = []
    while (name := _lib.fit_learned_name(len(names))) is not None:
        names.append(name.decode())
    return names


def ask(chip, ops):
    """What the learned models are asked: family, analytic and least nanoseconds, features."""
    width = _lib.fit_feature_limit()
    family, count = np.empty(ops.count, dtype=np.int32), np.empty(ops.count, dtype=np.int32)
    base, limit = np.empty(ops.count), np.empty(ops.count)
    features = np.empty((ops.count, width), dtype=np.float32)
    _lib.fit_ask(chip.handle, ops.handle, family.ctypes.data_as(ctypes.POINTER(ctypes.c_int)), _pointer(base),
                 _pointer(limit), count.ctypes.data_as(ctypes.POINTER(ctypes.c_int)),
                 features.ctypes.data_as(ctypes.POINTER(ctypes.c_float)))
    used = int(count.max()) if ops.count else 0
    return family, base, limit, features[:, :used]


class Models:
    def __init__(self, chip, directory):
        handle = _lib.fit_models(chip.sheet_handle, str(directory).encode())
        if not handle:
            raise ValueError(f"cannot load models from {directory}")
        self.handle = ctypes.c_void_p(handle)

    def __call__(self, ops):
        ns, low, high = np.empty(ops.count), np.empty(ops.count), np.empty(ops.count)
        _lib.fit_evaluate(self.handle, ops.handle, _pointer(ns), _pointer(low), _pointer(high))
        return ns, low, high
