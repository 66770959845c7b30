"""Maya from Python: run a training command without a GPU, and ask what it would take on a cluster.

    import maya

    run = maya.run(["torchrun", "--nproc-per-node", "8", "train.py"], cluster="dgx-h100")
    run.prediction.step.ms                        # the answer; a notebook draws it
    run.predict(cluster="dgx-b200")               # the same recording on other GPUs, in milliseconds
    run.predict(set={"network.nic_gbps": 100})
    run.timeline().to_dataframe()
    maya.compare(h100=run, b200=run.predict("dgx-b200"))
    maya.search("space.toml")                     # the best configuration (docs/search.md)

The work is done by the `maya` program; a process of it stays open and keeps what it has read (`maya/engine.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maya.installation import MayaError, program

__version__ = "0.2.0"
__all__ = ["MayaError", "Run", "clusters", "compare", "estimate", "gpus", "net", "open", "predict", "program", "run", "search"]

if TYPE_CHECKING:
    from maya.api import Run, clusters, compare, estimate, gpus, net, open, predict, run


def __getattr__(name: str) -> Any:
    """Loaded when it is asked for: `maya` as a command should not wait for it, and a search brings Optuna."""
    import importlib

    if name == "search":
        return importlib.import_module("maya.search")
    if name in __all__:
        return getattr(importlib.import_module("maya.api"), name)
    raise AttributeError(f"module 'maya' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
