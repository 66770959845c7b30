"""Figures of a load from the times at which its tokens came: the definitions of vLLM's and SGLang's benchmarks.

TTFT: from sending a request to its first token. TPOT: the rest of its time over the rest of its tokens. ITL: each
interval between two pieces of text. E2E: from sending to the last token."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Sequence

from maya import MayaError
from maya.serve_bench.client import Answer

PERCENTILES = (50, 90, 95, 99)
TIMES = ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms")


def percentile(values: Sequence[float], share: float) -> float:
    """By linear interpolation between the closest ranks."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share / 100
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def distribution(values: Sequence[float]) -> dict[str, float] | None:
    if not values:
        return None
    return {"mean": sum(values) / len(values), **{f"p{share}": percentile(values, share) for share in PERCENTILES}}


def times(answer: Answer) -> dict[str, float]:
    """TTFT, TPOT and E2E of one request, in ms."""
    first = answer.times[0] - answer.sent
    found = {"ttft_ms": first * 1e3, "e2e_ms": (answer.ended - answer.sent) * 1e3}
    if answer.output > 1:
        found["tpot_ms"] = (answer.ended - answer.times[0]) / (answer.output - 1) * 1e3
    return found


@dataclass(frozen=True)
class Limit:
    """An upper limit on a time: `ttft<500ms` for each request, `p99_ttft<500ms` for a load."""

    time: str
    ms: float
    share: str = ""  # p50, p90, p95, p99, mean

    @property
    def text(self) -> str:
        return f"{self.share + '_' if self.share else ''}{self.time.removesuffix('_ms')}<{self.ms:g}ms"


_LIMIT = re.compile(r"\s*(?:(p50|p90|p95|p99|median|mean)_)?(ttft|tpot|itl|e2e)\s*<=?\s*([0-9.]+)\s*(us|ms|s)?\s*$")


def limits(text: str, of_load: bool) -> list[Limit]:
    found = []
    for part in text.split(","):
        match = _LIMIT.match(part)
        if not match or bool(match[1]) != of_load:
            example = "p99_ttft<500ms" if of_load else "ttft<500ms,tpot<20ms"
            raise MayaError(f"{part.strip()!r} is not a limit; an example is {example}")
        scale = {"us": 1e-3, "ms": 1.0, None: 1.0, "s": 1e3}[match[4]]
        share = "p50" if match[1] == "median" else match[1] or ""
        found.append(Limit(match[2] + "_ms", float(match[3]) * scale, share))
    return found


def meets(figures: dict[str, Any], wanted: Sequence[Limit]) -> bool:
    """Whether a whole load keeps limits like p99_ttft<500ms. A load with failed requests keeps none."""
    if figures["failed"] or not figures["completed"]:
        return False
    return all((figures[limit.time] or {limit.share: 0.0})[limit.share] <= limit.ms for limit in wanted)


def figures(answers: Sequence[Answer], slo: Sequence[Limit] = ()) -> dict[str, Any]:
    """The figures of a load as prediction.json has them under `serving.loads[]`."""
    good = [answer for answer in answers if not answer.problem]
    result: dict[str, Any] = {"requests": len(answers), "completed": len(good), "failed": len(answers) - len(good)}
    problems = sorted({answer.problem for answer in answers if answer.problem})
    if problems:
        result["problems"] = problems[:5]
    per_request = [times(answer) for answer in good]
    for name in ("ttft_ms", "tpot_ms", "e2e_ms"):
        result[name] = distribution([entry[name] for entry in per_request if name in entry])
    result["itl_ms"] = distribution([(b - a) * 1e3 for answer in good for a, b in zip(answer.times, answer.times[1:])])
    result["input_tokens"], result["output_tokens"] = sum(a.input for a in good), sum(a.output for a in good)
    result["cached_tokens"] = sum(a.cached for a in good)
    if not good:
        return result
    seconds = max(max(answer.ended for answer in good) - min(answer.sent for answer in answers), 1e-9)
    result["duration_s"] = seconds
    result["requests_per_second"] = len(good) / seconds
    result["output_tokens_per_second"] = result["output_tokens"] / seconds
    result["total_tokens_per_second"] = (result["output_tokens"] + result["input_tokens"]) / seconds
    if slo:
        kept = sum(all(entry.get(limit.time, 0.0) <= limit.ms for limit in slo) for entry in per_request)
        result["slo"] = ",".join(limit.text for limit in slo)
        result["goodput_requests_per_second"] = kept / seconds
        result["slo_share"] = kept / len(answers)
    return result
