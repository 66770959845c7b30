"""`pip install .` by itself gives the command, the libraries and the catalogue."""

import os
import subprocess
import sys
import venv

from conftest import ROOT


def test_pip_install(tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    bin = tmp_path / "venv" / "bin"
    subprocess.run(
        [bin / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", str(ROOT)],
        check=True,
        timeout=1500,
    )
    # Away from the tree, with nothing that points back to it.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAYA_")}
    def maya(*words):
        return subprocess.run([bin / "maya", *words], cwd=tmp_path, env=environment, capture_output=True, text=True)

    assert maya("--version").stdout.startswith("maya ")
    assert "h100-sxm" in maya("gpus").stdout
    code = "import torch; print(torch.ones(3, device='cuda').shape)"
    done = maya("run", "--cluster", "dgx-a100", "--no-predict", "--", sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    assert "torch.Size([3])" in done.stdout
