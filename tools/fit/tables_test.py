"""Tables that cannot be used as they are: `python -m unittest discover -s tools/fit -p '*_test.py'` with the packages of requirements.txt."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

import pandas as pd

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import data  # noqa: E402
import shipped  # noqa: E402
import tables  # noqa: E402

GOOD = [dict(gemm_dtype="bfloat16", m=4096, n=4096, k=4096, latency=0.25), dict(gemm_dtype="bfloat16", m=1, n=4096, k=4096, latency=0.012)]


def said(call):
    """What a call prints on stderr."""
    out = io.StringIO()
    with contextlib.redirect_stderr(out):
        call()
    return out.getvalue()


class Tables(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "ops/h100_sxm").mkdir(parents=True)
        self.chip = shipped.Chip(data.sheets()["h100-sxm"])

    def write(self, rows, library="vllm", table="gemm_perf"):
        path = self.folder / f"ops/h100_sxm/{library}-1.0-{table}.parquet"
        pd.DataFrame(rows).to_parquet(path)
        return path

    def read(self):
        return tables.gemm(self.folder, "h100_sxm")

    def test_a_file_cut_short_is_named(self):
        path = self.write(GOOD)
        path.write_bytes(path.read_bytes()[:100])
        with self.assertRaisesRegex(tables.BadTable, r"vllm-1\.0-gemm_perf\.parquet: cannot be read .*Copy it again"):
            self.read()

    def test_a_missing_column_is_named(self):
        self.write([{k: v for k, v in row.items() if k != "latency"} for row in GOOD])
        with self.assertRaisesRegex(tables.BadTable, r"no column latency; it has gemm_dtype"):
            self.read()

    def test_an_unknown_type_is_named(self):
        self.write([*GOOD, {**GOOD[0], "gemm_dtype": "fp3"}])
        with self.assertRaisesRegex(tables.BadTable, "products in fp3"):
            self.read()

    def test_times_of_zero_or_less_are_left_out_and_counted(self):
        self.write([*GOOD, {**GOOD[0], "m": 8, "latency": 0.0}, {**GOOD[0], "m": 16, "latency": -1.0}, {**GOOD[0], "m": 32, "latency": float("nan")}])
        words = said(lambda: self.assertEqual(len(self.read()), 2))
        self.assertIn("3 rows with a time of zero or less left out", words)

    def test_times_below_the_physical_limit_are_left_out_and_counted(self):
        self.write([*GOOD, {**GOOD[0], "m": 8192, "latency": 0.1}])
        whole = self.read()
        words = said(lambda: self.assertEqual(len(tables.possible(whole, self.chip, "h100")[0]), 2))
        self.assertRegex(words, r"1 rows faster than the data sheet's peak left out, the first: gemm m=4096 n=8192 k=4096 .* in 100\.00 µs")

    def test_tables_that_contradict_each_other_are_named_with_the_one_believed(self):
        self.write(GOOD)
        self.write([{**GOOD[0], "latency": 0.6}, GOOD[1]], "sglang")
        words = said(lambda: tables.contradictions(self.read(), "h100"))
        self.assertRegex(words, r"vllm and sglang differ by more than a factor of two in 1 of 2 ops, the first: gemm m=4096 .* \(2\.4\)")
        self.assertIn("where none is named, vllm is believed", words)

    def test_layers_that_are_not_gated_are_known_from_any_table(self):
        row = dict(moe_dtype="bfloat16", num_tokens=4, hidden_size=2688, inter_size=1856, topk=6, num_experts=128, moe_tp_size=1, moe_ep_size=1,
                   distribution="balanced", latency=0.1)
        self.write([{**row, "kernel_source": "vllm_triton"}], table="moe_perf")
        self.assertIn("matrices=3", tables.experts(self.folder, "h100_sxm").scheme[0])
        self.write([{**row, "kernel_source": "moe_torch_flow_nongated"}], "trtllm", "moe_perf")
        self.assertTrue(all("matrices=2" in s for s in tables.experts(self.folder, "h100_sxm").scheme))
        # 128 experts of three matrices of 10 MB take 1.1 ms to read at 3.35 TB/s: slower times than that may be of gated ones.
        full = {**row, "num_tokens": 64, "latency": 1.4}
        self.write([{**full, "kernel_source": "vllm_triton"}], table="moe_perf")
        self.write([{**full, "kernel_source": "moe_torch_flow_nongated"}], "trtllm", "moe_perf")
        self.assertTrue(all("matrices=3" in s for s in tables.experts(self.folder, "h100_sxm").scheme))
        self.write([{**full, "kernel_source": "moe_torch_flow_nongated", "latency": 0.9}], "trtllm", "moe_perf")
        self.assertTrue(all("matrices=2" in s for s in tables.experts(self.folder, "h100_sxm").scheme))


if __name__ == "__main__":
    unittest.main()
