"""A run that does not fit: what was allocated, and which change would make it fit."""

import json
import pathlib
import subprocess
import sys

import maya
import pytest

TRAIN = """
import argparse
import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int)
rows = parser.parse_args().batch_size * 1024
with torch.device("cuda"):
    model = nn.Sequential(*(nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)) for _ in range(8)))
optimizer = torch.optim.AdamW(model.parameters())
for step in range(4):
    model(torch.randn(rows, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
# A GPU of 6 GiB keeps the run small.
SMALL = ["--cluster", "h100-sxm", "--set", "gpu.memory_bytes=6442450944"]


def record(folder: pathlib.Path, name: str, batch: int, *options: str) -> dict:
    (folder / "train.py").write_text(TRAIN)
    subprocess.run([maya.program(), "run", *SMALL, *options, "--out", str(folder / name), "--", sys.executable,
                    str(folder / "train.py"), "--batch-size", str(batch)], timeout=300, capture_output=True)
    return json.loads((folder / name / "prediction.json").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fit")


def test_running_out_of_memory_says_how_to_learn_what_fits(folder):
    found = record(folder, "refused", 32, "--stacks")
    assert found["step"] is None and found["out_of_memory"]["during_run"]
    assert any("--no-memory-limit" in note for note in found["notes"])
    assert "--batch-size 32" in found["what_if"][0]["command"]


def test_a_little_more_than_the_gpu_has(folder):
    needed = record(folder, "unlimited", 32, "--no-memory-limit", "--no-report")["memory"][0]
    share = needed["peak_bytes"] / needed["capacity_bytes"] - 1
    found = record(folder, "enough", 32, "--memory-slack", f"{share + 0.01:.3f}", "--no-report")
    assert found["step"]["ms"] > 0 and found["out_of_memory"]["during_run"] is False
    found = record(folder, "too-little", 32, "--memory-slack", f"{share / 4:.3f}", "--no-report")
    assert found["step"] is None and found["out_of_memory"]["during_run"]


def test_the_largest_micro_batch_that_fits(folder):
    found = record(folder, "beyond", 32, "--no-memory-limit")
    assert found["step"]["ms"] > 0 and found["memory"][0]["peak_bytes"] > 6 * 2**30
    assert found["out_of_memory"]["during_run"] is False
    smaller, recomputed = [w for w in found["what_if"] if "micro-batch" in w["what"] or "recompute" in w["what"]]
    batch = int(smaller["command"].split()[-1])
    assert 8 < batch < 32 and smaller["memory_bytes"] <= smaller["capacity_bytes"]
    assert "recompute" in recomputed["what"] and recomputed["memory_bytes"] <= recomputed["capacity_bytes"]
    gpus = [w for w in found["what_if"] if w["ms"] > 0]
    assert gpus and all(w["memory_bytes"] <= w["capacity_bytes"] for w in gpus)
    # The emulated GPU agrees, and the replayed memory is about what it takes.
    then = record(folder, "fits", batch, "--no-report")
    assert then["out_of_memory"] is None
    assert then["memory"][0]["peak_bytes"] == pytest.approx(smaller["memory_bytes"], rel=0.08)


def test_a_larger_micro_batch_is_not_promised_if_it_does_not_fit(folder):
    found = record(folder, "small", 16, "--stacks")
    (larger,) = [w for w in found["what_if"] if w["what"] == "a micro-batch of 32 in place of 16"]
    assert larger["memory_bytes"] > larger["capacity_bytes"] and "not fit" in larger["problem"]
    assert larger["command"].endswith("--batch-size 32")
