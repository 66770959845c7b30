"""Runs tests of multi-GPU code without a GPU: `pytest --maya dgx-h100:2`.

    @pytest.mark.gpus(16)
    def test_gradients_are_reduced():     # the function itself runs on 16 emulated ranks
        total = torch.ones(1, device="cuda")
        torch.distributed.all_reduce(total)

    @pytest.mark.gpus(8)
    def test_step(maya_ranks):
        run = maya_ranks("train.py", "--layers", "4")      # a script of yours
        assert run.prediction.peak_bytes < 40 * 2**30
        assert run.collectives("all_reduce").count <= 12

The function of a test marked `gpus(N)` without a `maya_ranks` parameter runs on N emulated ranks: every rank imports
its file under torchrun and calls the function with an initialized process group. The test fails if a rank fails, or if
the collectives of the ranks do not match. `maya_limits(step_ms=…, peak_gib=…)` sets limits for the prediction.
"""

from __future__ import annotations

import pathlib
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from maya import api, installation
from maya.installation import MayaError

# Every rank runs this program, which calls the test function with a process group.
RANK = """
import importlib.util, os, sys
import torch
import torch.distributed as dist
file, name, root = sys.argv[1:4]
sys.path[:0] = [os.path.dirname(file), root]
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
spec = importlib.util.spec_from_file_location("maya_test_module", file)
module = importlib.util.module_from_spec(spec)
sys.modules["maya_test_module"] = module
spec.loader.exec_module(module)
found = module
for part in name.split("."):
    found = found() if isinstance(found, type) else found
    found = getattr(found, part)
found()
torch.cuda.synchronize()
dist.destroy_process_group()
"""


@dataclass(frozen=True)
class Collectives:
    """Collectives of one kind in a step, as a mean over the ranks."""

    count: float
    bytes: float
    largest: int


class TestRun(api.Run):
    """A run, with functions for assertions."""

    __test__ = False  # not a test class, despite its name

    def collectives(self, kind: str | None = None) -> Collectives:
        """The collectives of a step: count, total bytes and largest size. `kind` is all_reduce, all_gather …"""
        calls = [
            c for g in self.prediction.raw.get("communicators", []) for c in g["calls"] if kind in (None, c["kind"])
        ]
        return Collectives(sum(c["count"] for c in calls), sum(c["count"] * c["bytes"] for c in calls),
                           max((c["bytes"] for c in calls), default=0))


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("maya", "multi-GPU tests without a GPU")
    group.addoption("--maya", metavar="CLUSTER", default=None,
                    help="run tests marked gpus(N) on an emulated cluster, for example dgx-h100:2")
    group.addoption("--maya-out", metavar="DIR", default=None, help="keep the runs here (default: pytest's own folder)")


def pytest_load_initial_conftests(early_config: Any, parser: Any, args: list[str]) -> None:
    """Test files import torch in this process when they are collected, which must work without NVIDIA's libraries."""
    if any(word == "--maya" or word.startswith("--maya=") for word in args):
        installation.open_libraries()


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "gpus(n): run on n emulated GPUs (pytest --maya CLUSTER)")
    config.addinivalue_line("markers", "maya_limits(step_ms=None, peak_gib=None): what the prediction may be at most")


def pytest_collection_modifyitems(config: Any, items: list) -> None:
    if config.getoption("--maya"):
        return
    skip = pytest.mark.skip(reason="needs GPUs: run with --maya CLUSTER, for example --maya dgx-h100")
    for item in items:
        if item.get_closest_marker("gpus"):
            item.add_marker(skip)


def _ranks(item: Any) -> int:
    marker = item.get_closest_marker("gpus")
    if not marker or not marker.args or not isinstance(marker.args[0], int) or marker.args[0] < 1:
        raise pytest.UsageError(f"{item.nodeid}: @pytest.mark.gpus needs a number of GPUs, for example gpus(8)")
    return marker.args[0]


def _perform(request_config: Any, item: Any, folder: pathlib.Path, ranks: int, words: list[str]) -> TestRun:
    launcher = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}", "--nnodes=1"]
    cluster = request_config.getoption("--maya")
    per_node = _gpus_per_node(cluster)
    if ranks > per_node:
        if ranks % per_node:
            raise pytest.UsageError(
                f"{item.nodeid}: {ranks} GPUs are no whole number of nodes of {cluster} ({per_node} each)"
            )
        launcher = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            f"--nproc-per-node={per_node}",
            f"--nnodes={ranks // per_node}",
            "--node-rank=0",
        ]
    run = api.run(
        [*launcher, *words], cluster=cluster.split(":")[0] if ranks > per_node else cluster, out=folder, check=False
    )
    if run.exit_code:
        raise AssertionError(
            f"the ranks ended with code {run.exit_code}; their output is above, the recording in {folder}"
        )
    found = TestRun(folder, run.exit_code)
    _check_limits(item, found)
    return found


def _gpus_per_node(spec: str) -> int:
    import json

    from maya.installation import call

    return json.loads(call(["clusters", spec, "--json"])).get("gpus_per_node", 1)


def _check_limits(item: Any, run: TestRun) -> None:
    marker = item.get_closest_marker("maya_limits")
    if not marker:
        return
    prediction = run.prediction
    step, peak = marker.kwargs.get("step_ms"), marker.kwargs.get("peak_gib")
    if step is not None:
        assert prediction.step and prediction.step.ms <= step, (
            f"a step takes {prediction.step_ms} ms, the limit is {step}"
        )
    if peak is not None:
        assert prediction.peak_bytes <= peak * 2**30, (
            f"{prediction.peak_bytes / 2**30:.2f} GiB at the peak, the limit is {peak}"
        )


@pytest.fixture
def maya_ranks(request: Any, tmp_path: pathlib.Path) -> Any:
    """maya_ranks("train.py", "--batch", "4") runs the script on as many emulated ranks as the mark of the test has."""
    count = 0

    def perform(*words: str) -> TestRun:
        nonlocal count
        count += 1
        out = request.config.getoption("--maya-out")
        folder = pathlib.Path(out) / request.node.name if out else tmp_path / "maya"
        folder = folder.with_name(f"{folder.name}-{count}") if count > 1 else folder
        return _perform(request.config, request.node, folder, _ranks(request.node), [str(w) for w in words])

    return perform


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> bool | None:
    """Runs the function of a marked test without a `maya_ranks` parameter on every rank."""
    if not pyfuncitem.get_closest_marker("gpus") or not pyfuncitem.config.getoption("--maya"):
        return None
    if "maya_ranks" in pyfuncitem.fixturenames:
        return None
    if pyfuncitem._fixtureinfo.argnames:
        raise pytest.UsageError(
            f"{pyfuncitem.nodeid}: a test that runs on the ranks themselves cannot have fixtures "
            f"({', '.join(pyfuncitem._fixtureinfo.argnames)}); start a script with maya_ranks instead"
        )
    name = ".".join(pyfuncitem.getmodpath().split("."))
    folder = pyfuncitem.config._tmp_path_factory.mktemp("maya", numbered=True)
    script = folder / "rank.py"
    script.write_text(RANK)
    out = pyfuncitem.config.getoption("--maya-out")
    run = pathlib.Path(out) / pyfuncitem.name if out else folder / "run"
    try:
        _perform(pyfuncitem.config, pyfuncitem, run, _ranks(pyfuncitem),
                 [str(script), str(pyfuncitem.path), name, str(pyfuncitem.config.rootpath)])
    except MayaError as problem:
        raise AssertionError(str(problem)) from None
    return True


def pytest_report_header(config: Any) -> str | None:
    cluster = config.getoption("--maya")
    return f"maya: tests marked gpus(N) run on {cluster}" if cluster else None


__all__ = ["Collectives", "TestRun", "maya_ranks"]
