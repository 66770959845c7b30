"""Searches over serving engines: [serving] of a space.

A trial is `maya serve-bench` in place of `maya run`: the configuration's command starts the engine, which then answers
a load in virtual time. What counts is what a client sees: tokens a second, what they cost, and how long they take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping

from maya.search.template import Template
from maya.serve_bench import metrics

PORT = "port"  # a placeholder for a free port, filled by `maya serve-bench`
SHARES = {"median": "p50", "mean": "mean", **{f"p{share}": f"p{share}" for share in metrics.PERCENTILES}}
TIMES = {time.removesuffix("_ms"): time for time in metrics.TIMES}
# Two recordings of one engine and load differed by 3 % in the time per token, on machines more and less busy
# (docs/accuracy-serving.md).
REPEATED = 0.03


@dataclass(frozen=True)
class Serving:
    load: tuple[Template, ...]
    limit: Template | None = None  # what the load has to keep: p99_ttft<500ms
    capacity: bool = False  # look for the highest rate that keeps `limit`
    slo: Template | None = None  # what each request has to keep, for goodput
    url: Template | None = None
    warmup: int = 1

    @property
    def templates(self) -> dict[str, list[Template]]:
        return {"load": list(self.load), **{key: [value] for key, value in (
            ("limit", self.limit), ("slo", self.slo), ("url", self.url)) if value}}

    def words(self, values: Mapping[str, Any]) -> list[str]:
        """Options of `maya serve-bench`."""
        words = ["--load", *(template.fill(values) for template in self.load), "--warmup", str(self.warmup)]
        for option, template in (("--slo", self.slo), ("--url", self.url)):
            if template:
                words += [option, template.fill(values)]
        if self.capacity and self.limit:
            words += ["--capacity", self.limit.fill(values)]
        return words

    def broken(self, values: Mapping[str, Any], prediction: Mapping[str, Any]) -> str:
        """What of `limit` the load did not keep; empty: it kept all."""
        if self.limit is None:
            return ""
        text = self.limit.fill(values)
        if self.capacity:
            return "" if figures(prediction) else f"no rate that was tried keeps {text}"
        missed = [limit for limit in metrics.limits(text, of_load=True)
                  if not metrics.meets(dict(figures(prediction)), [limit])]
        return ", ".join(f"{limit.text} is {figures(prediction)[limit.time][limit.share]:,.4g} ms"
                         for limit in missed if figures(prediction).get(limit.time))


def figures(prediction: Mapping[str, Any]) -> Mapping[str, Any]:
    """The load that counts: at the highest rate that keeps the limit, else the one that was asked for. Empty: none."""
    serving = prediction.get("serving") or {}
    if capacity := serving.get("capacity"):
        kept = [point for point in capacity.get("points") or [] if point.get("kept")]
        return max(kept, key=lambda point: point["rate"], default={})
    return (serving.get("loads") or [{}])[0]


def failure(prediction: Mapping[str, Any]) -> str:
    """Why the load tells nothing; empty: it does."""
    loads = (prediction.get("serving") or {}).get("loads") or []
    if not loads:
        return "the engine answered no load"
    failed, requests = loads[0].get("failed", 0), loads[0].get("requests", 0)
    if not failed:
        return ""
    return f"{failed} of {requests} requests failed: {'; '.join(loads[0].get('problems') or ['no reason given'])}"


def time_ms(prediction: Mapping[str, Any], time: str, share: str) -> float | None:
    """`time`: ttft, tpot, itl or e2e. `share`: median, mean, p90, …"""
    return (figures(prediction).get(TIMES[time]) or {}).get(SHARES[share])


def kept(serving: Mapping[str, Any]) -> dict[str, Any]:
    """What the store keeps of a prediction's `serving`."""
    made = {key: serving[key] for key in ("model", "ready_s") if key in serving}
    made["loads"] = [{key: value for key, value in load.items() if key != "series"} for load in serving["loads"]]
    if capacity := serving.get("capacity"):
        made["capacity"] = capacity
    return made
