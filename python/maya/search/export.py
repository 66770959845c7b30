"""results.csv and results.json: every configuration of the search, one row each."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from maya.search import serving
from maya.search.objective import peak_memory
from maya.search.space import Space
from maya.search.store import Record


def served(record: Record) -> dict[str, Any]:
    figures = serving.figures(record.prediction)
    found = {f"{share}_{time}_ms": serving.time_ms(record.prediction, time, share)
             for time in serving.TIMES for share in ("mean", "median", "p95", "p99")}
    return found | {name: figures.get(name) for name in (
        "rate", "requests_per_second", "output_tokens_per_second", "total_tokens_per_second",
        "goodput_requests_per_second")}


def rows(space: Space, records: list[Record]) -> list[dict[str, Any]]:
    found = []
    for record in records:
        step = record.prediction.get("step") or {}
        peak, capacity = peak_memory(record.prediction)
        breakdown = record.prediction.get("breakdown_ms") or {}
        row: dict[str, Any] = {"trial": record.number, **record.values, "outcome": record.kind, "detail": record.detail}
        row |= {f"goal_{name}": value for name, value in zip(space.objective.goals, record.goals)}
        row |= {
            "step_ms": step.get("ms"),
            "low_ms": step.get("low_ms"),
            "high_ms": step.get("high_ms"),
            "memory_bytes": peak or None,
            "memory_capacity_bytes": capacity or None,
            "mfu": record.prediction.get("mfu"),
            "usd_per_step": (record.prediction.get("cost") or {}).get("usd_per_step"),
            "gpus": record.prediction.get("gpus"),
            "cluster": record.prediction.get("cluster"),
        }
        row |= {f"{name}_ms": breakdown.get(name) for name in ("compute", "exposed_communication", "copy", "idle")}
        if space.serving:
            row |= served(record)
        row |= {"seconds": record.seconds, "reused": record.reused, "folder": record.folder}
        found.append(row)
    return found


def to_csv(space: Space, records: list[Record]) -> str:
    table, text = rows(space, records), io.StringIO()
    names: list[str] = []
    for row in table:
        names += [name for name in row if name not in names]
    writer = csv.DictWriter(text, names)
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()


def to_json(space: Space, records: list[Record], extra: dict[str, Any]) -> str:
    return json.dumps({"version": 1, "name": space.name, "goals": list(space.objective.goals),
                       "parameters": list(space.parameters), **extra, "trials": rows(space, records)}, indent=1) + "\n"
