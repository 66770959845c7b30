"""`maya validate` on a case of its own, and `maya profile` on an emulated GPU, where what is measured is what the
models say."""

from __future__ import annotations

import json
import sys

import pytest
from conftest import MAYA

SCRIPT = """
import torch
a = torch.randn(2048, 2048, device="cuda", dtype=torch.float16)
for i in range(4):
    torch.cuda.nvtx.range_push("timed")
    b = a @ a
    torch.cuda.synchronize()
    torch.cuda.nvtx.range_pop()
    for _ in range(20):   # not timed
        b = a @ a
    torch.cuda.synchronize()
"""

CASE = """
id = "one"
title = "one product"
source = "made up"
cluster = "a100-80gb-sxm"
command = "python folder/product.py"
steps = "timed"
measured = 100
unit = "products/s"
per_step = 1
quick = true

[environment]
torch = "any"
"""


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "folder"
    (folder / "cases").mkdir(parents=True)
    (folder / "product.py").write_text(SCRIPT)
    (folder / "cases" / "one.toml").write_text(CASE)
    return folder


@pytest.fixture
def validate(maya, folder, tmp_path):
    def call(*words):
        return maya(
            "validate", "--folder", str(folder), "--runs", str(tmp_path / "runs"), *words, MAYA_PYTHON=sys.executable
        )

    return call


def test_a_case_is_recorded_once_and_only_its_range_counts(validate, folder, tmp_path):
    done = validate("--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)["results"][0]
    assert result["measured_ms"] == 10.0
    # One product of 17 GFLOP, not twenty: a hundred microseconds or so, and a launch on however busy a host.
    assert 0.05 < result["predicted_ms"] < 1.5
    assert result["error"] == pytest.approx(result["predicted_ms"] / 10 - 1)
    recorded = list((tmp_path / "runs").glob("one-*/rank-0.maya"))
    assert len(recorded) == 1
    before = recorded[0].stat().st_mtime_ns
    page = tmp_path / "page.md"
    assert validate("--write", str(page)).returncode == 0
    assert recorded[0].stat().st_mtime_ns == before
    assert "one product" in page.read_text()
    (folder / "product.py").write_text(SCRIPT + "# changed\n")
    assert validate().returncode == 0
    assert len(list((tmp_path / "runs").glob("one-*/rank-0.maya"))) == 2


def test_problems_are_reported(validate, folder):
    done = validate("two")
    assert done.returncode == 1 and "no case two" in done.stderr
    (folder / "cases" / "one.toml").write_text(CASE.replace("products/s", "furlongs"))
    done = validate()
    assert done.returncode == 1 and "furlongs" in done.stderr
    (folder / "cases" / "one.toml").write_text(CASE.replace("product.py", "missing.py"))
    done = validate()
    assert done.returncode == 1 and "ended with code" in done.stdout


def test_profile_of_an_emulated_gpu_finds_the_models(run, maya, tmp_path):
    out = tmp_path / "a100.calibration"
    done = run(
        MAYA,
        "profile",
        "--families",
        "gemm",
        "memory",
        "--repeats",
        "3",
        "--calls",
        "3",
        "--out",
        str(out),
        "--json",
        cluster="a100-80gb-sxm",
        options=("--no-predict",),
        MAYA_PYTHON=sys.executable,
    )
    assert done.code == 0, done.stderr
    report = json.loads(done.stdout[done.stdout.index("{"):])
    assert report["gpu"] == "a100-80gb-sxm" and report["ops"] > 40
    for family, learned in report["families"].items():
        assert learned["before"] < 0.1, (family, learned)
        if learned["factor"]:
            assert learned["factor"] == pytest.approx(1, abs=0.1), (family, learned)
    # The file is one that the estimator takes.
    words = (
        "estimate",
        "gemm",
        "m=4096",
        "n=4096",
        "k=4096",
        "dtype=f16",
        "--gpu",
        "a100-80gb-sxm",
        "--calibration",
        str(out),
    )
    assert "measured" in maya(*words).stdout
