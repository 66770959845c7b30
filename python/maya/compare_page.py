"""`maya compare A B --html FILE`: compares predictions side by side in a self-contained page.

Only prediction.json is needed, so runs of other machines and of earlier versions can be compared: parts of the step,
families of the critical path, modules (runs with --stacks) and ops, aligned by name.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Any

from maya.installation import MayaError
from maya.visible import visible

TEMPLATE = pathlib.Path(__file__).with_name("compare_page.html")


def html_of(names: list[str], predictions: list[dict]) -> str:
    """The page. Names of files and kernels are not trusted: the page shows them as text, and its data contains no
    '<'."""
    text = json.dumps({"names": names, "runs": [_needed(p) for p in predictions]}).replace("<", "\\u003c")
    return TEMPLATE.read_text().replace("/*DATA*/null", text).replace("<!--SUMMARY-->", _table(names, predictions))


def _needed(prediction: dict) -> dict:
    keys = (
        "cluster",
        "gpu",
        "command",
        "world_size",
        "gpus",
        "settings",
        "step",
        "no_step",
        "breakdown_ms",
        "mfu",
        "throughput",
        "memory",
        "out_of_memory",
        "cost",
        "ops",
        "families",
        "code",
        "memory_at_peak",
        "notes",
    )
    kept = {key: prediction.get(key) for key in keys}
    kept["memory"] = [
        max(prediction.get("memory") or [{"peak_bytes": 0, "capacity_bytes": 0}], key=lambda m: m["peak_bytes"])
    ]
    return kept


def _table(names: list[str], predictions: list[dict]) -> str:
    """A table for browsers without JavaScript."""
    from maya.notebook import table

    rows = [
        {
            "run": name,
            "cluster": p["cluster"],
            "step ms": (p.get("step") or {}).get("ms"),
            **{k.replace("_", " ") + " ms": v for k, v in p["breakdown_ms"].items()},
        }
        for name, p in zip(names, predictions)
    ]
    return table(rows)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="maya compare", description="Compare predictions side by side in an HTML page"
    )
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("--html", required=True, metavar="FILE")
    options = parser.parse_args(arguments)
    from maya import api

    try:
        comparison = api.compare(*options.runs)
        pathlib.Path(options.html).write_text(comparison.page())
    except (MayaError, OSError) as problem:
        print(f"maya: {visible(str(problem))}", file=sys.stderr)
        return 1
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        what = visible(f"{type(problem).__name__}: {problem}"[:300])
        print(f"maya: a prediction is damaged ({what}); create it again with `maya predict RUN`", file=sys.stderr)
        return 1
    print(options.html)
    return 0


def differences(a: Any, b: Any) -> list[str]:
    """Settings and figures in which two predictions differ, as 'what: a → b'."""
    out = []
    for key in ("command", "cluster", "gpu", "world_size"):
        if a.get(key) != b.get(key):
            out.append(f"{key}: {a.get(key)} → {b.get(key)}")
    for key in sorted({*(a.get("settings") or {}), *(b.get("settings") or {})}):
        old, new = (a.get("settings") or {}).get(key), (b.get("settings") or {}).get(key)
        if old != new:
            out.append(f"{key}: {old} → {new}")
    return out


if __name__ == "__main__":
    sys.exit(main())
