"""pytest --maya: tests of multi-GPU code on emulated ranks."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT

TESTS = """
import pytest
import torch
import torch.distributed as dist

@pytest.mark.gpus(2)
def test_reduces():
    assert dist.get_world_size() == 2 and torch.cuda.is_available()
    total = torch.ones(1 << 20, device="cuda")
    dist.all_reduce(total)

@pytest.mark.gpus(2)
def test_a_rank_fails():
    assert dist.get_rank() == 0, "the second rank does not agree"

@pytest.mark.gpus(2)
def test_collectives_that_do_not_match():
    part = torch.ones(64, device="cuda")
    if dist.get_rank() == 0:
        dist.all_reduce(part)
    else:
        dist.broadcast(part, src=0)

@pytest.mark.gpus(2)
def test_script(maya_ranks):
    run = maya_ranks("train.py")
    calls = run.collectives("all_reduce")
    assert calls.count == 1 and calls.largest == 4 * 1000
    assert run.prediction.world_size == 2 and run.prediction.peak_bytes < 2 * 2**30

@pytest.mark.gpus(2)
@pytest.mark.maya_limits(peak_gib=0.001)
def test_limit(maya_ranks):
    maya_ranks("train.py")

def test_without_gpus():
    pass
"""
TRAIN = """
import os
import torch
import torch.distributed as dist
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
weight = torch.nn.Parameter(torch.ones(1000, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(4):
    (weight * 2).sum().backward()
    dist.all_reduce(weight.grad)
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("plugin")
    (made / "test_it.py").write_text(TESTS)
    (made / "train.py").write_text(TRAIN)
    return made


def perform(folder, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "maya.pytest_plugin", "-v", "--color=no", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
    )
    return done.stdout + done.stderr


def test_without_the_option_they_are_skipped(folder):
    (folder / "plain").mkdir()
    (folder / "plain" / "test_plain.py").write_text(
        "import pytest\n@pytest.mark.gpus(8)\ndef test_a():\n    raise AssertionError\n\ndef test_b():\n    pass\n")
    out = perform(folder, "-rs", "plain")
    assert "1 passed, 1 skipped" in out and "--maya dgx-h100" in out


def test_on_emulated_ranks(folder):
    out = perform(folder, "--maya", "dgx-h100", "test_it.py")
    assert "test_reduces PASSED" in out and "test_script PASSED" in out and "test_without_gpus PASSED" in out
    assert "test_a_rank_fails FAILED" in out and "the second rank does not agree" in out
    assert "test_limit FAILED" in out and "the limit is 0.001" in out
    assert "test_collectives_that_do_not_match FAILED" in out
