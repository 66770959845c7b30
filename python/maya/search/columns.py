"""What is shown of a configuration that ran, beside its goals: of a training step its time and memory, of a serving
engine what a client sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from maya.search import serving
from maya.search.objective import GOALS, peak_memory
from maya.search.space import Space
from maya.search.store import Record


@dataclass(frozen=True)
class Column:
    title: str
    text: Callable[[Record], str]
    brief: bool = False  # also in the line of a trial


def milliseconds(ms: float) -> str:
    if ms >= 10000:
        return f"{ms / 1000:,.2f} s"
    return f"{ms:,.0f} ms" if ms >= 1000 else f"{ms:.1f} ms" if ms >= 1 else f"{1000 * ms:.0f} us"


def goal_text(name: str, value: float) -> str:
    goal = GOALS[name]
    if goal.unit == "ms":
        return milliseconds(value)
    if goal.unit == "$":
        return f"${value:,.0f}" if value >= 1000 else f"${value:,.2f}" if value >= 10 else f"${value:.4g}"
    digits = ",.0f" if value >= 100 else ".3g"
    return f"{value:{digits}} {goal.unit}".replace(" /s", "/s")


def memory_text(record: Record) -> str:
    peak, capacity = peak_memory(record.prediction)
    return f"{peak / 2**30:.1f} of {capacity / 2**30:.1f} GiB" if capacity else "-"


def _goals(space: Space, apart: tuple[str, ...]) -> list[Column]:
    def text(name: str, place: int) -> Callable[[Record], str]:
        return lambda record: goal_text(name, record.goals[place])

    return [Column(GOALS[name].title.lower() if GOALS[name].of != "serving" else GOALS[name].title, text(name, place),
                   True) for place, name in enumerate(space.objective.goals) if name not in apart]


def _interval(record: Record) -> str:
    step = record.prediction["step"]
    return f"{milliseconds(step['low_ms'])} – {milliseconds(step['high_ms'])}"


def _free(record: Record) -> str:
    peak, capacity = peak_memory(record.prediction)
    retries = (record.prediction.get("memory") or [{}])[0].get("allocator_retries")
    free = f"{(capacity - peak) / 2**30:.1f} GiB" if capacity else "-"
    return free + (f", {retries} retries" if retries else "")


def _time(time: str, share: str) -> Callable[[Record], str]:
    def text(record: Record) -> str:
        found = serving.time_ms(record.prediction, time, share)
        return "-" if found is None else milliseconds(found)

    return text


def _rate(record: Record) -> str:
    rate = serving.figures(record.prediction).get("output_tokens_per_second")
    return "-" if rate is None else f"{rate:,.0f}"


def _capacity(record: Record) -> str:
    return f"{serving.figures(record.prediction).get('rate', 0.0):.3g}/s"


def columns(space: Space) -> list[Column]:
    """The columns of the best configurations, between their names and what they are behind the first."""
    if space.serving is None:
        return [Column("step", lambda record: milliseconds(record.step_ms or 0), True), Column("80 %", _interval),
                *_goals(space, ("step_time", "memory")),
                Column("memory", lambda record: f"{peak_memory(record.prediction)[0] / 2**30:.1f} GiB"),
                Column("free", _free)]
    found = _goals(space, ())
    if space.serving.capacity:
        found.append(Column("capacity", _capacity, True))
    if "output_tokens_per_second" not in space.objective.goals:
        found.append(Column("output tokens/s", _rate))
    found += [Column(f"{share} {time.upper()}", _time(time, share), share == "median")
              for time in ("ttft", "tpot") for share in ("median", "p99")
              if f"{share}_{time}" not in space.objective.goals]
    return [*found, Column("GPUs", lambda record: str(record.prediction.get("gpus", "-")))]


def line(space: Space, record: Record) -> str:
    """What came out of a trial that ran, in a line."""
    parts = [f"{column.title} {column.text(record)}" if space.serving else column.text(record)
             for column in columns(space) if column.brief]
    if space.serving is None:
        parts.append(memory_text(record))
    if record.reused:
        parts.append(f"({record.reused})")
    return ", ".join(parts)
