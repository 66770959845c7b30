"""search.html: a page by itself, drawn by a few hundred lines of plain JavaScript from the records embedded in it."""

from __future__ import annotations

import json
import pathlib
from typing import TYPE_CHECKING, Any

from maya.search import importance, reason, serving, summary
from maya.search.columns import columns, goal_text, memory_text, milliseconds
from maya.search.objective import GOALS, peak_memory
from maya.search.store import Record
from maya.search.view import duration, record_line

if TYPE_CHECKING:
    from maya.search.result import SearchResult

MOST_TRIALS = 3000  # in the page; results.csv has all
MOST_SKIPS = 100  # of one reason


def html(result: "SearchResult") -> str:
    template = (pathlib.Path(__file__).parent / "page.html").read_text()
    # `</` would end the script; in JSON it can be escaped with a backslash.
    text = json.dumps(_data(result)).replace("</", "<\\/").replace("<!--", "<\\!--")
    return template.replace("/*DATA*/null", text)


def _data(result: "SearchResult") -> dict[str, Any]:
    space, ranked = result.space, result.ranked
    goal = space.objective.goals[0]
    tried = [r for r in result.records if r.kind != "skipped"]
    shown = ranked[:MOST_TRIALS] + [r for r in tried if not r.ok][:MOST_TRIALS]
    sides = [(str(i), r) for i, r in enumerate(ranked[:summary.SHOWN], 1)]
    if result.baseline and result.baseline not in ranked[:summary.SHOWN]:
        sides.append(("base", result.baseline))
    groups = [name for name in reason.group_names() if any(reason.grouped(r.prediction).get(name) for _, r in sides)]
    return {
        "name": space.name,
        "sub": _sub(result),
        "cards": _cards(result),
        "goal_title": _title(goal),
        "paragraphs": [p for p in (summary.ties(result), summary.why(result), summary.may_fit(result), *result.notes)
                       if p],
        "best": ranked[0].number if ranked else None,
        "more": GOALS[goal].maximize,
        "parameters": list(space.parameters),
        "trials": [_trial(result, r) for r in shown],
        **(_served_axes(goal) if space.serving else _axes(goal)),
        "groups": groups,
        "side": [
            {
                "place": place,
                "label": space.label(r.values),
                "ms": r.step_ms,
                "text": milliseconds(r.step_ms or 0),
                "parts": [[g, reason.grouped(r.prediction)[g]] for g in groups if reason.grouped(r.prediction).get(g)],
            }
            for place, r in sides if r.step_ms and not space.serving
        ],
        "importance": importance.shares(space, ranked),
        "skips": _skips(result),
    }


def _axes(goal: str) -> dict[str, Any]:
    """Axes of the first plot and columns of the table for training."""
    axes: list[dict[str, Any]] = [
        {"key": "step_ms", "title": "Step (ms)"},
        {"key": "memory", "title": "Memory (GiB)"},
        {"key": "usd", "title": "Cost of a step ($)"},
        {"key": "tokens", "title": "Tokens a second", "more": True},
    ]
    if goal not in ("step_time", "tokens_per_second", "cost_per_step", "memory"):
        axes.append({"key": "goal", "title": _title(goal)})
    columns = [["step, ms", "step_ms"], *([] if goal == "step_time" else [[_title(goal), "goal"]]),
               ["memory, GiB", "memory"]]
    return {"axes": axes, "columns": columns, "plot_title": "Step time against memory and cost"}


def _served_axes(goal: str) -> dict[str, Any]:
    """The same for serving: the goal against what a client sees."""
    others = [["tpot", "Median TPOT (ms)", "median_tpot"], ["ttft", "Median TTFT (ms)", "median_ttft"],
              ["rate", "Output tokens/s", "output_tokens_per_second"]]
    others = [[key, title] for key, title, same in others if goal != same]
    axes = [{"key": "goal", "title": _title(goal), "more": GOALS[goal].maximize},
            *({"key": key, "title": title, "more": key == "rate"} for key, title in others)]
    table = [[_title(goal), "goal"], *([title, key] for key, title in others), ["GPUs", "gpus"]]
    return {"axes": axes, "columns": table,
            "plot_title": f"{GOALS[goal].title} against what a client sees"}


def _title(goal: str) -> str:
    title, unit = GOALS[goal].title, GOALS[goal].unit
    return title if title.endswith(unit) else f"{title} ({unit})"


def _sub(result: "SearchResult") -> str:
    ran = [r for r in result.records if r.seconds]
    counts = summary.counts(result)
    clusters = sorted({r.prediction["cluster"] for r in result.records if r.prediction.get("cluster")})
    where = f" on {', '.join(clusters[:3])}{' …' if len(clusters) > 3 else ''}" if clusters else ""
    seconds = sum(r.seconds for r in ran)
    return f"{len(result.records)} configurations{where}: {counts}; {len(ran)} trials took {duration(seconds)}"


def _cards(result: "SearchResult") -> list[list[str]]:
    best = result.best
    if best is None:
        return [["nothing fits", "and keeps the limits"]]
    space, cards = result.space, []
    for goal, value in zip(space.objective.goals, best.goals):
        title = GOALS[goal].title
        cards.append([goal_text(goal, value), f"{title[0].lower()}{title[1:]} of the best"])
    cards.append([space.label(best.values), "the best configuration"])
    if space.serving:
        return cards + [[column.text(best), column.title] for column in columns(space) if column.brief
                        and column.title.startswith("median ")]
    if "step_time" not in space.objective.goals:
        cards.append([milliseconds(best.step_ms or 0), "its step"])
    if "memory" not in space.objective.goals:
        cards.append([memory_text(best), "memory of its fullest GPU"])
    return cards


def _trial(result: "SearchResult", record: Record) -> dict[str, Any]:
    prediction = record.prediction
    throughput, cost = prediction.get("throughput") or {}, prediction.get("cost") or {}
    peak = peak_memory(prediction)[0]
    served = {} if result.space.serving is None else {
        "tpot": serving.time_ms(prediction, "tpot", "median"),
        "ttft": serving.time_ms(prediction, "ttft", "median"),
        "rate": serving.figures(prediction).get("output_tokens_per_second"),
        "gpus": prediction.get("gpus"),
    }
    return {
        "number": record.number,
        "values": record.values,
        "label": result.space.label(record.values),
        "line": record_line(result.space, record).split(": ", 1)[-1],
        "kind": record.kind,
        "detail": record.detail,
        "ok": record.ok,
        "goal": record.goals[0] if record.goals else None,
        "step_ms": record.step_ms,
        "memory": peak / 2**30 if peak and prediction.get("step") else None,
        "usd": cost.get("usd_per_step"),
        "tokens": throughput.get("per_second"),
        "baseline": record.baseline,
        **served,
    }


def _skips(result: "SearchResult") -> list[dict[str, Any]]:
    groups: dict[str, list[Record]] = {}
    for record in result.skipped:
        groups.setdefault(summary.general_reason(record.detail), []).append(record)
    return [{"reason": what, "count": len(records),
             "rows": [[result.space.label(r.values), r.detail] for r in records[:MOST_SKIPS]]}
            for what, records in sorted(groups.items(), key=lambda item: -len(item[1]))]
