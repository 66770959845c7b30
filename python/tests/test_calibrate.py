"""Reading profiles for `maya calibrate`; run with `python3 -m unittest discover python/tests`."""
import gzip
import json
import math
import os
import pathlib
import sqlite3
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from maya import (
    MayaError,  # noqa: E402
    calibrate,  # noqa: E402
)


def trace(shapes=True, kernels=True, gpu="NVIDIA H100 80GB HBM3"):
    arguments = {"External id": 7}
    if shapes:
        arguments.update({"Input Dims": [[128, 64], [64, 256]], "Input type": ["c10::BFloat16", "c10::BFloat16"]})
    events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 9, "args": arguments},
              {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 2, "dur": 1,
               "args": {"External id": 7, "correlation": 11}}]
    if kernels:
        events.append({"ph": "X", "cat": "kernel", "name": "nvjet_tst_128x160", "ts": 5, "dur": 12.5,
                       "args": {"correlation": 11, "grid": [4, 1, 1], "block": [128, 1, 1]}})
        events.append({"ph": "X", "cat": "kernel", "ts": 30, "dur": 8.0,
                       "name": "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
                               "at::detail::Array<char*, 3> >(int, …)",
                       "args": {"grid": [1000, 1, 1], "block": [128, 1, 1]}})
    return {"deviceProperties": [{"name": gpu}], "traceEvents": events}


class Reading(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name) / "a.pt.trace.json.gz"

    def tearDown(self):
        self.folder.cleanup()

    def write(self, value):
        with gzip.open(self.path, "wt") as stream:
            json.dump(value, stream)
        return self.path

    def test_shapes_become_ops(self):
        profile = calibrate.read(self.write(trace()))
        samples = {s.family: s for s in profile.samples.values()}
        gemm = samples["gemm.tensor"]
        # BLAS sees the row-major product with m and n exchanged.
        self.assertEqual(gemm.text, "gemm m=256 n=128 k=64 a=bf16 b=bf16 d=bf16 compute=bf16")
        self.assertEqual(gemm.times, [12.5])
        add = samples["memory.pointwise"]
        self.assertEqual(add.words["elements"], 1000 * 128 * 4)
        self.assertFalse(add.exact)
        self.assertEqual(profile.gpu, "NVIDIA H100 80GB HBM3")

    def test_without_shapes_grids_are_used(self):
        profile = calibrate.read(self.write(trace(shapes=False)))
        self.assertEqual({s.family for s in profile.samples.values()}, {"memory.pointwise"})

    def test_no_gpu_events(self):
        with self.assertRaisesRegex(MayaError, "no GPU kernels"):
            calibrate.read(self.write(trace(kernels=False)))

    def test_gpu_of_another_vendor(self):
        with self.assertRaisesRegex(MayaError, "another vendor"):
            calibrate.read(self.write(trace(gpu="AMD Instinct MI300X")))

    def test_cut_off(self):
        whole = self.write(trace()).read_bytes()
        self.path.write_bytes(whole[: len(whole) // 2])
        with self.assertRaisesRegex(MayaError, "cut off"):
            calibrate.read(self.path)

    def test_nsys(self):
        path = pathlib.Path(self.folder.name) / "a.sqlite"
        base = sqlite3.connect(path)
        base.executescript(
            "create table StringIds(id, value); create table TARGET_INFO_GPU(name);"
            "create table CUPTI_ACTIVITY_KIND_KERNEL(start, end, demangledName, gridX, gridY, gridZ, blockX, blockY, "
            "blockZ);"
            "insert into TARGET_INFO_GPU values('NVIDIA A40');"
            "insert into StringIds values(1, 'void at::native::vectorized_elementwise_kernel<4, "
            "at::native::FillFunctor<float>>');"
            "insert into CUPTI_ACTIVITY_KIND_KERNEL values(100, 5100, 1, 10, 1, 1, 128, 1, 1);"
        )
        base.commit()
        base.close()
        profile = calibrate.read(path)
        self.assertEqual(profile.gpu, "NVIDIA A40")
        self.assertEqual(next(iter(profile.samples.values())).times, [5.0])

    def test_csv_needs_a_measured_column(self):
        path = pathlib.Path(self.folder.name) / "a.csv"
        path.write_text("op,m,n,k\ngemm,1,2,3\n")
        with self.assertRaisesRegex(MayaError, "measured_us"):
            calibrate.read(path)
        path.write_text("op,m,n,k,dtype,measured_ms\ngemm,1,2,3,f16,0.5\n")
        self.assertEqual(next(iter(calibrate.read(path).samples.values())).times, [500.0])


class Learning(unittest.TestCase):
    def test_a_common_factor_is_found(self):
        samples, predicted = [], []
        for i in range(20):
            s = calibrate.Sample("gemm.tensor", {"op": "gemm"}, f"gemm m={i}")
            s.times = [100.0 * (1.2 if i % 2 else 1.3)]
            samples.append(s)
            predicted.append(100.0)
        learned = calibrate.learn(samples, predicted)["gemm.tensor"]
        self.assertAlmostEqual(learned["factor"], 1.25, delta=0.06)
        self.assertLess(learned["after"], learned["before"])

    def test_factor_that_does_not_help_is_not_used(self):
        samples, predicted = [], []
        for i in range(20):
            s = calibrate.Sample("gemm.tensor", {"op": "gemm"}, f"gemm m={i}")
            s.times = [100.0 * math.exp((-1) ** (i // 2) * 0.5)]
            samples.append(s)
            predicted.append(100.0)
        self.assertIsNone(calibrate.learn(samples, predicted)["gemm.tensor"]["factor"])


@unittest.skipUnless(os.environ.get("MAYA_MEASUREMENTS"), "set MAYA_MEASUREMENTS to the measurements folder")
class RealTraces(unittest.TestCase):
    def test_the_three_traces(self):
        folder = pathlib.Path(os.environ["MAYA_MEASUREMENTS"]) / "profiler_traces"
        found = {p.name: calibrate.read(p) for p in sorted(folder.glob("*.json.gz"))}
        self.assertEqual(len(found), 3)
        for profile in found.values():
            self.assertGreater(profile.kernels, 3000)
            self.assertTrue(profile.samples)


if __name__ == "__main__":
    unittest.main()
