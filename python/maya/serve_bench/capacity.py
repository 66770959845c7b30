"""The highest request rate that keeps a limit, by bisection. Each point is a load on the running engine."""

from __future__ import annotations

from typing import Any, Awaitable, Callable

FIRST_RATE = 1.0
MOST_POINTS = 12
CLOSE = 0.05  # the rates on both sides of the answer are this close


async def search(
    measure: Callable[[float], Awaitable[tuple[bool, dict[str, Any]]]], first: float = FIRST_RATE
) -> dict[str, Any]:
    """`measure(rate)` says whether the limit was kept, and the figures of the load."""
    points: list[dict[str, Any]] = []

    async def kept(rate: float) -> bool:
        ok, figures = await measure(rate)
        points.append({"rate": rate, "kept": ok, **figures})
        return ok

    low, high, rate = 0.0, None, first
    while len(points) < MOST_POINTS:
        if await kept(rate):
            # A rate that the engine was never offered teaches nothing: the load is too short to saturate it.
            if points[-1].get("requests_per_second", 0.0) < 0.5 * rate and low > 0:
                low = rate
                break
            low = rate
        else:
            high = rate
        if high is not None and low >= high * (1 - CLOSE):
            break
        if high is not None and low == 0 and high < first / 64:
            break
        rate = low * 2 if high is None else (low + high) / 2 if low else high / 2
    points.sort(key=lambda point: point["rate"])
    return {"rate": low, "limited": high is not None, "points": points}
