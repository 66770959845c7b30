"""Maya from Python: run a training command without a GPU and predict its step on a cluster.

    import maya

    run = maya.run(["torchrun", "--nproc-per-node", "8", "train.py"], cluster="dgx-h100")
    run.prediction.step.ms                        # the answer; a notebook draws it
    run.predict(cluster="dgx-b200")               # the same recording on other GPUs, in milliseconds
    run.predict(set={"network.nic_gbps": 100})
    run.timeline().to_dataframe()
    maya.compare(h100=run, b200=run.predict("dgx-b200"))
    maya.search("space.toml")                     # the best configuration (docs/search.md)

The `maya` program does the work. One process of it stays open and keeps recordings in memory (`maya/engine.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maya.installation import MayaError, program

__version__ = "0.2.0"
__all__ = [
    "MayaError",
    "Run",
    "clusters",
    "compare",
    "estimate",
    "gpus",
    "net",
    "open",
    "predict",
    "program",
    "run",
    "search",
]

if TYPE_CHECKING:
    from maya.api import Run, clusters, compare, estimate, gpus, net, open, predict, run


def __getattr__(name: str) -> Any:
    """Loads submodules on first use, so that the `maya` command starts quickly and Optuna is only imported by a
    search."""
    import importlib

    if name == "search":
        return importlib.import_module("maya.search")
    if name in __all__:
        return getattr(importlib.import_module("maya.api"), name)
    raise AttributeError(f"module 'maya' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
