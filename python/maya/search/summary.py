"""The end of a search in a terminal: the best five, what is tied, why the best is best, what was skipped."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from maya.search import compare, outcome, reason
from maya.search.columns import columns, milliseconds
from maya.search.objective import GOALS, peak_memory
from maya.search.store import Record

if TYPE_CHECKING:
    from maya.search.result import SearchResult

SHOWN = 5


def reference(result: "SearchResult") -> tuple[Record, str] | None:
    """What the best is compared with: the baseline, else the first configuration that ran."""
    if result.baseline:
        return result.baseline, "the baseline"
    first = next((r for r in result.records if r.ok and not r.reused), None)
    return (first, "the first configuration tried") if first else None


def facts(result: "SearchResult") -> dict[str, Any]:
    """The answer for programs."""
    best = result.ranked
    found: dict[str, Any] = {"may_fit": [r.number for r in result.may_fit], "finished": result.finished,
                             "notes": result.notes, "outcomes": dict(Counter(r.kind for r in result.records))}
    if not best:
        return found
    found["best"] = {"trial": best[0].number, "values": best[0].values, "goals": best[0].goals}
    found["tied_with_best"] = [r.number for r in compare.tied_with_first(result.space, best)[1:]]
    found["pareto"] = [r.number for r in result.pareto]
    other = reference(result)
    if other:
        change = compare.difference(result.space, best[0], other[0])
        found["compared_with"] = {"trial": other[0].number, "what": other[1], "percent_slower": change.percent,
                                  "plus_minus": change.plus_minus}
        found["why"] = reason.paragraph(result.space, best[0], *other)
    return found


def why(result: "SearchResult") -> str:
    best, other = result.best, reference(result)
    if best is None or other is None:
        return ""
    if other[0].key == best.key:
        return "The best is the baseline itself." if result.baseline else ""
    return reason.paragraph(result.space, best, *other)


def ties(result: "SearchResult") -> str:
    """`1 is 3.1 ± 0.8 % faster than 4; 2 and 3 are tied with it`."""
    best = result.ranked
    if len(best) < 2:
        return ""
    tied = compare.tied_with_first(result.space, best)
    places = {record.number: place for place, record in enumerate(best, 1)}
    sentences = []
    if len(tied) > 1:
        names = _runs([places[r.number] for r in tied[1:]])
        sentences.append(
            f"{names} {'is' if len(tied) == 2 else 'are'} tied with 1: the prediction cannot tell them apart"
        )
    next_one = next((r for r in best[1:] if r not in tied), None)
    if next_one:
        change = compare.difference(result.space, best[0], next_one)
        faster = 100 * (1 - 1 / (1 + change.percent / 100))
        sentences.append(
            f"1 is {faster:.1f} ± {change.plus_minus / (1 + change.percent / 100):.1f} % {_better(result)} than "
            f"{places[next_one.number]}"
        )
    return "; ".join(sentences) + "." if sentences else ""


def _better(result: "SearchResult") -> str:
    return "cheaper" if GOALS[result.space.objective.goals[0]].unit == "$" else "faster"


def _runs(numbers: list[int]) -> str:
    parts: list[str] = []
    start = previous = numbers[0]
    for number in [*numbers[1:], None]:
        if number is not None and number == previous + 1:
            previous = number
            continue
        parts.append(str(start) if start == previous else f"{start} to {previous}")
        start = previous = number  # type: ignore[assignment]
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]


def general_reason(detail: str) -> str:
    """A reason for skipping without the numbers of one configuration."""
    for beginning, general in (
            ("needs at least as much memory", "needs at least as much memory as one that ran out"),
            ("cannot be faster", "even at the GPUs' peak slower than the best"),
            ("estimated", "estimated behind the best, beyond the estimate's error")):
        if detail.startswith(beginning):
            return general
    return "fits without what only saves memory" if "every pair of trials so far was slower" in detail else detail


def skip_reasons(result: "SearchResult") -> list[tuple[str, int]]:
    """Reasons in general words, with how many configurations each skipped."""
    return Counter(general_reason(r.detail) for r in result.skipped).most_common()


def may_fit(result: "SearchResult") -> str:
    """Configurations of which the prediction cannot tell whether they fit."""
    unsure = [r for r in result.records if r.kind == outcome.MAY_FIT]
    peak, capacity = peak_memory(result.best.prediction) if result.best else (0, 0)
    if result.space.serving:
        return ""  # engines fill the memory that there is
    if not unsure and capacity and peak > (1 - outcome.MEMORY_ERROR) * capacity:
        return (f"1 fits with {(capacity - peak) / 2**20:,.0f} MiB left, less than the error of predicted memory "
                f"({100 * outcome.MEMORY_ERROR:g} %): it may run out of memory.")
    if not unsure:
        return ""
    better, best = result.may_fit, result.best
    if not better:
        return (f"{len(unsure)} more may fit (their memory is predicted within {100 * outcome.MEMORY_ERROR:g} % of the "
                "GPU's); none would be better than 1.")
    first = better[0]
    gain = ""
    if best:
        change = compare.difference(result.space, first, best)
        gain = f", {change.percent:.1f} ± {change.plus_minus:.1f} % better than 1"
    others = f" {len(unsure) - 1} more may fit." if len(unsure) > 1 else ""
    return (f"May fit: {result.space.label(first.values)} would take {milliseconds(first.step_ms or 0)} a step{gain}; "
            f"{first.detail}. Try it first{'; if it runs out of memory, 1 is the best' if best else ''}.{others}")


def counts(result: "SearchResult") -> str:
    kinds = Counter(r.kind for r in result.records)
    return " · ".join(f"{kinds[kind]} {kind}" for kind in outcome.KINDS if kinds[kind])


def table(result: "SearchResult", most: int = SHOWN) -> list[list[str]]:
    space, best = result.space, result.ranked
    shown_columns = columns(space)
    rows = [["", "configuration", *(column.title for column in shown_columns), "behind 1"]]
    shown: list[tuple[str, Record]] = [(str(i), r) for i, r in enumerate(best[:most], 1)]
    base = result.baseline
    if base and base not in best[:most]:
        shown.append(("base", base))
    shown[:0] = [("?", r) for r in result.may_fit[:most]]
    for name, record in shown:
        behind = "" if record is best[0] else _behind(compare.difference(space, best[0], record))
        behind = "may fit" if name == "?" else behind
        rows.append([name, space.label(record.values), *(column.text(record) for column in shown_columns), behind])
    return rows


def _behind(change: compare.Difference) -> str:
    if change.tied:
        return f"tied ({change.percent:+.1f} ± {change.plus_minus:.1f} %)"
    return f"{change.percent:.1f} ± {change.plus_minus:.1f} %"


def text(result: "SearchResult", width: int = 110) -> str:
    if not result.records:
        return "\n  No trial has ended yet.\n"
    lines = [""]
    lines.append(f"  {len(result.records)} configurations: {counts(result)}")
    for what, count in skip_reasons(result):
        lines.append(f"    {count} skipped: {what}")
    if result.best is None:
        lines += ["", "  No configuration fits and keeps the limits."]
        if unsure := may_fit(result):
            lines += [f"  {line}" for line in _wrapped(unsure, width)]
        for record in [r for r in result.records if r.kind != outcome.SKIPPED][:SHOWN]:
            lines.append(f"    {result.space.label(record.values)}: {record.kind}: {record.detail}"[:width])
        return "\n".join(lines) + "\n"
    rows = table(result)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines.append("")
    for row in rows:
        cells = [cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))]
        lines.append("  " + "  ".join(cells).rstrip())
    lines.append("")
    for paragraph in (ties(result), why(result), may_fit(result), *result.notes):
        if paragraph:
            lines += [f"  {line}" for line in _wrapped(paragraph, width)]
    return "\n".join(lines) + "\n"


def _wrapped(paragraph: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(paragraph, width)
