"""One small recorded run, made once for all tests of the Python package."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

TRAIN = """
import torch
import torch.nn as nn

torch.manual_seed(0)
with torch.device("cuda"):
    model = nn.Sequential(nn.Linear(2048, 8192), nn.GELU(), nn.Linear(8192, 2048))
optimizer = torch.optim.AdamW(model.parameters())
for step in range(5):
    loss = model(torch.randn(8192, 2048, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture(scope="session")
def recorded(tmp_path_factory) -> pathlib.Path:
    """A folder with train.py and the run maya-runs/demo of it."""
    import maya

    folder = tmp_path_factory.mktemp("python")
    (folder / "train.py").write_text(TRAIN)
    subprocess.run(
        [
            maya.program(),
            "run",
            "--cluster",
            "h100-sxm",
            "--out",
            "maya-runs/demo",
            "--stacks",
            "--",
            sys.executable,
            "train.py",
        ],
        cwd=folder,
        check=True,
        timeout=300,
        capture_output=True,
    )
    return folder


@pytest.fixture
def here(recorded, monkeypatch) -> pathlib.Path:
    """The working directory is that folder, and `python` is the interpreter of the tests."""
    monkeypatch.chdir(recorded)
    monkeypatch.setenv("PATH", f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return recorded
