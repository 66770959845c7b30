"""HTML for notebooks: inline styles, no scripts and no external resources."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maya.results import Comparison, Prediction, Timeline

COLOURS = {"compute": "#3d8b5f", "exposed communication": "#b0559b", "copy": "#4a7fc1", "idle": "#e0b04a"}
KINDS = {
    "gemm": "#3d8b5f",
    "attention": "#2f6f8f",
    "collective": "#b0559b",
    "point_to_point": "#c77fb4",
    "copy": "#4a7fc1",
    "pointwise": "#8fbf9f",
    "optimizer_step": "#6b7fb0",
    "normalization": "#7aa95c",
}


def ms(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value / 1e3:.2f} s" if value >= 1e4 else f"{value:.4g} ms" if value >= 1 else f"{value * 1e3:.3g} µs"


def size(value: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.3g} TiB"


def cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,.4g}" if isinstance(value, float) else escape(str(value))


def table(rows: list[dict]) -> str:
    if not rows:
        return "<p>nothing</p>"
    head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{cell(row.get(name))}</td>" for name in rows[0]) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def bar(parts: list[tuple[str, float, str]], height: int = 18) -> str:
    total = sum(value for _, value, _ in parts) or 1
    pieces = "".join(
        f'<div title="{escape(name, quote=True)} {ms(value)}" '
        f'style="width:{100 * value / total:.3f}%;background:{colour}"></div>'
        for name, value, colour in parts
        if value > 0
    )
    return (
        f'<div style="display:flex;height:{height}px;max-width:640px;border-radius:4px;overflow:hidden">{pieces}</div>'
    )


def parts_of(p: "Prediction") -> list[tuple[str, float, str]]:
    b = p.breakdown
    values = (b.compute, b.exposed_communication, b.copy, b.idle)
    return [(name, value, colour) for (name, colour), value in zip(COLOURS.items(), values)]


def prediction(p: "Prediction") -> str:
    if p.step:
        head = f"<b>{ms(p.step.ms)}</b> a step ({ms(p.step.low_ms)} – {ms(p.step.high_ms)}, 80 %)"
    else:
        head = f"<b>no step</b>: {escape(p.no_step or '')}"
    facts = [f"{p.world_size} ranks on {escape(p.cluster)}"]
    if p.throughput:
        facts.append(f"{p.throughput.per_second:,.0f} {escape(p.throughput.unit)}/s")
    if p.mfu is not None:
        facts.append(f"MFU {100 * p.mfu:.1f} %")
    if p.memory:
        fullest = max(p.memory, key=lambda m: m.peak_bytes)
        facts.append(f"{size(fullest.peak_bytes)} of {size(fullest.capacity_bytes)}")
    if p.cost.usd_per_step:
        facts.append(f"${1000 * p.cost.usd_per_step:,.2f} / 1000 steps")
    what = ", ".join(f"{k}={v}" for k, v in p.settings.items())
    if what:
        facts.append("what if " + escape(what))
    parts = parts_of(p)
    legend = " · ".join(
        f'<span style="color:{colour}">■</span> {name} {ms(value)}' for name, value, colour in parts if value > 0
    )
    return (
        f'<div style="font-family:system-ui,sans-serif;line-height:1.6"><div><code>{escape(p.command[:200])}</code></div>'
        f'<div>{head} · {" · ".join(facts)}</div>{bar(parts)}<div style="font-size:90%">{legend}</div></div>'
    )


def comparison(c: "Comparison") -> str:
    longest = max((p.step_ms or 0 for p in c.predictions), default=0) or 1
    rows = []
    for name, p, row in zip(c.names, c.predictions, c.rows()):
        width = 100 * (p.step_ms or 0) / longest
        ratio = row["against_first"]
        rows.append(f"<tr><td>{escape(name)}</td><td>{escape(p.cluster)}</td><td>{ms(p.step_ms)}</td>"
                    f"<td>{'–' if ratio is None else f'{ratio:.3f}×'}</td><td>{size(p.peak_bytes)}</td>"
                    f'<td style="width:340px"><div style="width:{width:.2f}%">{bar(parts_of(p), 12)}</div></td></tr>')
    return (
        "<table><thead><tr><th>run</th><th>cluster</th><th>step</th><th>against the "
        "first</th><th>memory</th><th></th></tr>"
        f"</thead><tbody>{''.join(rows)}</tbody></table>"
    )


def timeline(t: "Timeline") -> str:
    """Draws the first measured step: one row per stream, for one rank of each class."""
    step = next((k for k, s in enumerate(t.steps) if s.get("measured")), None)
    shown = [s for s in t.spans if s.step == step]
    if not shown:
        return "<p>an empty timeline</p>"
    begin, end = min(s.start_us for s in shown), max(s.end_us for s in shown)
    scale = 900 / max(end - begin, 1e-9)
    lanes = sorted({(s.ranks[0], s.stream) for s in shown})
    place = {lane: i for i, lane in enumerate(lanes)}
    boxes, drawn = [], {}
    for s in sorted(shown, key=lambda s: s.start_us):
        lane = (s.ranks[0], s.stream)
        x, width = (s.start_us - begin) * scale, max((s.end_us - s.start_us) * scale, .4)
        if x + width < drawn.get(lane, -1) + .4:  # several in one pixel
            continue
        drawn[lane] = x + width
        boxes.append(
            f'<rect x="{110 + x:.1f}" y="{place[lane] * 20}" width="{width:.1f}" height="17" '
            f'fill="{KINDS.get(s.kind, "#86a89a")}"><title>{escape(s.work or s.name)} {ms(s.us / 1e3)}</title></rect>'
        )
    labels = "".join(
        f'<text x="0" y="{i * 20 + 13}" font-size="11" fill="currentColor">rank {rank} stream {stream}</text>'
        for (rank, stream), i in place.items()
    )
    return (
        f'<svg viewBox="0 0 1020 {len(lanes) * 20}" width="100%" font-family="system-ui,sans-serif" role="img" '
        f'aria-label="timeline of a step">{labels}{"".join(boxes)}</svg><div>{ms((end - begin) / 1e3)}, {len(shown)} '
        'spans</div>'
    )
