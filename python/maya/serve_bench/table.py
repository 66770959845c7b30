"""The figures of serve-bench as text."""

from __future__ import annotations

from typing import Any

COLUMNS = ("mean", "p50", "p90", "p95", "p99")
ROWS = (("ttft_ms", "TTFT"), ("tpot_ms", "TPOT"), ("itl_ms", "ITL"), ("e2e_ms", "E2E"))


def _ms(value: float) -> str:
    return f"{value:,.2f}" if value < 100 else f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


def of_load(figures: dict[str, Any]) -> str:
    lines = [
        f"  {figures['load']}: {figures['completed']} of {figures['requests']} requests completed"
        + (f" in {figures['duration_s']:,.2f} s" if "duration_s" in figures else "")
    ]
    for problem in figures.get("problems", ()):
        lines.append(f"    failed: {problem}")
    if not figures["completed"]:
        return "\n".join(lines)
    lines.append(f"    {'ms':<6}" + "".join(f"{name:>11}" for name in COLUMNS))
    for key, title in ROWS:
        if figures.get(key):
            lines.append(f"    {title:<6}" + "".join(f"{_ms(figures[key][name]):>11}" for name in COLUMNS))
    lines.append(
        f"    {figures['requests_per_second']:,.2f} requests/s, "
        f"{figures['output_tokens_per_second']:,.1f} output tokens/s, "
        f"{figures['total_tokens_per_second']:,.1f} tokens/s in all"
    )
    if figures.get("cached_tokens"):
        share = figures["cached_tokens"] / figures["input_tokens"]
        lines.append(f"    {share:.1%} of the prompt tokens came from the prefix cache")
    engine = figures.get("engine") or {}
    if engine.get("preemptions"):
        lines.append(f"    {engine['preemptions']:,.0f} requests preempted: the cache was full")
    if engine.get("drafted_tokens"):
        share = engine.get("accepted_tokens", 0.0) / engine["drafted_tokens"]
        lines.append(f"    {engine['drafted_tokens']:,.0f} tokens drafted, {share:.1%} of them accepted")
    if "slo" in figures:
        lines.append(
            f"    goodput {figures['goodput_requests_per_second']:,.2f} requests/s: {figures['slo_share']:.1%} of the "
            f"requests kept {figures['slo']}"
        )
    if "usd_per_million_output_tokens" in figures:
        lines.append(f"    ${figures['usd_per_million_output_tokens']:,.3f} per million output tokens")
    return "\n".join(lines)


def of_capacity(found: dict[str, Any]) -> str:
    key = found["limit"].split(",")[0].split("<")[0].strip()
    share, time = key.split("_", 1)
    share, time = "p50" if share == "median" else share, time + "_ms"
    lines = [
        f"  capacity under {found['limit']}: "
        + (f"{found['rate']:.3g} requests/s" if found["rate"] else "the limit was not kept at any rate tried")
        + ("" if found["limited"] else " and more (no rate broke the limit)"),
        f"    {'requests/s':>10}{'served/s':>11}{key + ', ms':>16}",
    ]
    for point in found["points"]:
        value = point.get(time)
        lines.append(
            f"    {point['rate']:>10.3g}{point.get('requests_per_second', 0):>11.3g}"
            f"{_ms(value[share]) if value else '–':>16}  {'kept' if point['kept'] else 'broken'}"
        )
    return "\n".join(lines)


def text(serving: dict[str, Any]) -> str:
    parts = ["  Serving     predicted times, as a client of the engine sees them"]
    parts += [of_load(figures) for figures in serving["loads"]]
    if "capacity" in serving:
        parts.append(of_capacity(serving["capacity"]))
    return "\n".join(parts)
