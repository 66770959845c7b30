"""Why the best is best: its critical path against another configuration's, in plain sentences."""

from __future__ import annotations

from typing import Any, Mapping

from maya.search import compare, enumeration, serving
from maya.search.columns import goal_text, milliseconds
from maya.search.objective import GOALS, NoValue, peak_memory
from maya.search.space import Space
from maya.search.store import Record

# Names of the families of the critical path for the user.
_GROUPS = (
    ("matrix products and attention", ("gemm", "grouped_gemm", "attention", "convolution", "triton")),
    ("communication between nodes", ("communication between nodes",)),
    ("communication within nodes", ("communication within a node",)),
    ("messages between pipeline stages", ("messages",)),
    ("waiting (pipeline bubble, late ranks, gaps)", ("waiting",)),
    ("the host", ("host",)),
)
_REST = "memory-bound kernels (norms, activations, optimizer)"


def group_names() -> list[str]:
    return [*(group for group, _ in _GROUPS[:1]), _REST, *(group for group, _ in _GROUPS[1:])]


def grouped(prediction: Mapping[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    names = {family: group for group, families in _GROUPS for family in families}
    for entry in prediction.get("families") or []:
        group = names.get(entry["family"], _REST)
        found[group] = found.get(group, 0.0) + entry["ms"]
    return found


def _and(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def _differing(space: Space, a: Record, b: Record) -> str:
    parts = []
    for name in space.parameters:
        x, y = a.values.get(name), b.values.get(name)
        if x != y:
            parts.append(f"{name} {_value(x)} in place of {_value(y)}")
    return _and(parts) if parts else "the same parameters"


def _value(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def paragraph(space: Space, best: Record, other: Record, name: str) -> str:
    """`best` against `other`, which is called `name`."""
    goal = space.objective.goals[0]
    change = compare.difference(space, best, other)
    saved = 100 * (1 - 1 / (1 + change.percent / 100))
    spread = change.plus_minus / (1 + change.percent / 100)
    if best.key == other.key:
        return f"The best is {name} itself."
    if space.serving:
        return _served(space, best, other, name, saved, spread)
    what = {"step_time": "less time", "cost_per_token": "less money", "cost_to_tokens": "less money",
            "cost_per_step": "less money", "time_to_tokens": "less time", "tokens_per_second": "less time per token"}
    sentences = [
        f"The best ({_differing(space, best, other)}) needs {saved:.1f} ± {spread:.1f} % {what.get(goal, 'less')} than "
        f"{name}: {goal_text(goal, best.goals[0])} against {goal_text(goal, other.goals[0])}."
    ]
    # If the steps have different amounts of work, everything is compared for the same number of tokens.
    scale = _tokens(space, other) / _tokens(space, best)
    sentences += _where_time_goes(best, other, scale)
    sentences += _work(best.prediction, other.prediction, scale)
    mine, capacity = peak_memory(best.prediction)
    theirs, their_capacity = peak_memory(other.prediction)
    if capacity and their_capacity:
        sentences.append(f"It takes {mine / 2**30:.1f} GiB of each GPU, {name} {theirs / 2**30:.1f}; "
                         f"{(capacity - mine) / 2**30:.1f} GiB stay free.")
    return " ".join(sentences)


def _served(space: Space, best: Record, other: Record, name: str, saved: float, spread: float) -> str:
    goal = space.objective.goals[0]
    if GOALS[goal].maximize:
        gain = f"gives {100 * (best.goals[0] / other.goals[0] - 1):.1f} ± {spread:.1f} % more"
    else:
        gain = f"needs {saved:.1f} ± {spread:.1f} % less"
    sentences = [f"The best ({_differing(space, best, other)}) {gain} than {name} ({GOALS[goal].title}: "
                 f"{goal_text(goal, best.goals[0])} against {goal_text(goal, other.goals[0])})."]
    mine, theirs = best.prediction, other.prediction
    rates = [serving.figures(p).get("output_tokens_per_second") or 0.0 for p in (mine, theirs)]
    if all(rates):
        gpus = [p.get("gpus", 0) for p in (mine, theirs)]
        sentences.append(f"It makes {rates[0]:,.0f} output tokens a second on {gpus[0]} GPU{'s' * (gpus[0] != 1)}, "
                         f"{name} {rates[1]:,.0f} on {gpus[1]}.")
    for time, what in (("ttft", "to the first token"), ("tpot", "per further token")):
        pair = [serving.time_ms(p, time, "median") for p in (mine, theirs)]
        if None not in pair:
            sentences.append(f"The median time {what} is {milliseconds(pair[0])} against {milliseconds(pair[1])}.")
    return " ".join(sentences)


def _where_time_goes(best: Record, other: Record, scale: float) -> list[str]:
    mine, theirs = grouped(best.prediction), grouped(other.prediction)
    if not mine or not theirs or not best.step_ms or not other.step_ms:
        return []
    changes = {group: theirs.get(group, 0.0) - mine.get(group, 0.0) * scale for group in {*mine, *theirs}}
    least = 0.02 * other.step_ms
    less = sorted(((g, d) for g, d in changes.items() if d >= least), key=lambda c: -c[1])[:3]
    more = sorted(((g, d) for g, d in changes.items() if -d >= least), key=lambda c: c[1])[:2]
    sentences = []
    if less:
        parts = [
            f"{milliseconds(d)} less of {g} ({milliseconds(theirs.get(g, 0.0))} → "
            f"{milliseconds(mine.get(g, 0.0) * scale)})"
            for g, d in less
        ]
        sentences.append(f"On the critical path it has {_and(parts)}"
                         + (", for the same number of tokens." if abs(scale - 1) > 1e-6 else "."))
    if more:
        parts = [f"{milliseconds(-d)} more of {g}" for g, d in more]
        sentences.append(f"It pays for that with {_and(parts)}.")
    return sentences


def _tokens(space: Space, record: Record) -> float:
    """The tokens of a step; 1 if they are not known, so that steps are compared."""
    try:
        return space.objective.work(enumeration.Tree(space).complete(record.values), record.prediction) or 1.0
    except NoValue:
        return 1.0


def _work(mine: Mapping[str, Any], theirs: Mapping[str, Any], scale: float) -> list[str]:
    sentences = []
    a, b = (mine.get("flops_per_step") or 0) * scale, theirs.get("flops_per_step") or 0
    if a > 0 and b > 0 and abs(a / b - 1) > 0.02:
        sentences.append(f"It computes {abs(100 * (a / b - 1)):.0f} % {'fewer' if a < b else 'more'} FLOPs"
                         f"{' (less recomputation or padding)' if a < b else ''}.")
    if mine.get("mfu") and theirs.get("mfu") and abs(mine["mfu"] - theirs["mfu"]) > 0.005:
        sentences.append(
            f"The GPUs reach {100 * mine['mfu']:.1f} % of their peak in place of {100 * theirs['mfu']:.1f} %."
        )
    return sentences
