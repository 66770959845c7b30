"""What the search looks for, computed from a prediction. Every goal is turned so that less is better inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping

from maya import MayaError
from maya.search import serving
from maya.search.expression import Expression


@dataclass(frozen=True)
class Goal:
    title: str
    unit: str
    maximize: bool = False
    needs_tokens: bool = False  # the number of tokens to train on
    per_token: bool = False  # the tokens of a step
    priced: bool = False
    of: str = "training"  # or "serving", or "both"


GOALS: dict[str, Goal] = {
    "step_time": Goal("Step", "ms"),
    "tokens_per_second": Goal("Tokens/s", "/s", maximize=True, per_token=True, of="both"),
    "cost_per_step": Goal("Cost of a step", "$", priced=True),
    "cost_per_token": Goal("Cost of a million tokens", "$", per_token=True, priced=True, of="both"),
    "time_to_tokens": Goal("Time to train", "h", needs_tokens=True, per_token=True),
    "cost_to_tokens": Goal("Cost to train", "$", needs_tokens=True, per_token=True, priced=True),
    "memory": Goal("Memory", "GiB", of="both"),
    "cost_per_output_token": Goal("Cost of 1M output tokens", "$", priced=True, of="serving"),
    "output_tokens_per_second": Goal("Output tokens/s", "/s", maximize=True, of="serving"),
    "requests_per_second": Goal("Requests/s", "/s", maximize=True, of="serving"),
    "goodput": Goal("Goodput", "requests/s", maximize=True, of="serving"),
    **{f"{share}_{time}": Goal(f"{share} {time.upper()}", "ms", of="serving")
       for time in serving.TIMES for share in serving.SHARES},
}
_SERVED = {"output_tokens_per_second": "output_tokens_per_second", "requests_per_second": "requests_per_second",
           "tokens_per_second": "total_tokens_per_second", "goodput": "goodput_requests_per_second"}


def goals_of(kind: str) -> list[str]:
    """Names of the goals of training or of serving."""
    return [name for name, goal in GOALS.items() if goal.of in (kind, "both")]


class NoValue(MayaError):
    """The prediction does not have a value that the goal needs. The message says how to provide it."""


def peak_memory(prediction: Mapping[str, Any]) -> tuple[int, int]:
    """Peak and capacity in bytes of the rank with the least left."""
    ranks = prediction.get("memory") or []
    if not ranks:
        return 0, 0
    fullest = max(ranks, key=lambda rank: rank["peak_bytes"] - rank["capacity_bytes"])
    return fullest["peak_bytes"], fullest["capacity_bytes"]


@dataclass(frozen=True)
class Objective:
    goals: tuple[str, ...] = ("step_time",)
    tokens_per_step: Expression | None = None
    tokens: float | None = None

    @property
    def first(self) -> Goal:
        return GOALS[self.goals[0]]

    def work(self, values: Mapping[str, Any], prediction: Mapping[str, Any]) -> float:
        """Tokens (or samples) of a step: from the space, else from the prediction."""
        if self.tokens_per_step:
            return float(self.tokens_per_step.value(values))
        throughput = prediction.get("throughput")
        if not throughput:
            raise NoValue("the tokens of a step are not known: give `tokens_per_step` in [objective]")
        return float(throughput["per_step"])

    def check_work(self, values: Mapping[str, Any], prediction: Mapping[str, Any]) -> str:
        """Checks that the detected step has as many tokens as the space says. Returns the problem, or an empty
        string."""
        throughput = prediction.get("throughput")
        if self.tokens_per_step is None or not throughput or throughput.get("unit", "tokens") != "tokens":
            return ""
        said, found = float(self.tokens_per_step.value(values)), float(throughput["per_step"])
        if abs(found / said - 1) < 0.01:
            return ""
        return (f"the detected step has {found:,.0f} tokens, [objective] tokens_per_step says {said:,.0f}; a part of a "
                "step was detected as a whole step, or the space is wrong")

    def values(self, values: Mapping[str, Any], prediction: Mapping[str, Any]) -> list[float]:
        return [self.value(goal, values, prediction) for goal in self.goals]

    def value(self, name: str, values: Mapping[str, Any], prediction: Mapping[str, Any]) -> float:
        if name == "memory":
            return peak_memory(prediction)[0] / 2**30
        if prediction.get("serving"):
            return served(name, prediction)
        goal, seconds = GOALS[name], prediction["step"]["ms"] / 1000
        if goal.priced:
            dollars = prediction["cost"].get("usd_per_step")
            if dollars is None:
                raise NoValue(no_price(prediction, "step_time"))
        if name == "step_time":
            return seconds * 1000
        if name == "cost_per_step":
            return dollars
        work = self.work(values, prediction)
        if name == "tokens_per_second":
            return work / seconds
        if name == "cost_per_token":
            return dollars / work * 1e6
        steps = self.tokens / work
        return steps * (seconds / 3600 if name == "time_to_tokens" else dollars)

    def low_is_good(self, name: str, value: float) -> float:
        return -value if GOALS[name].maximize else value


def no_price(prediction: Mapping[str, Any], other: str) -> str:
    return (f"the catalogue has no price for {prediction.get('cluster')}: give the cluster a file with "
            f"usd_per_gpu_hour, or search for {other}")


def served(name: str, prediction: Mapping[str, Any]) -> float:
    """A goal of serving."""
    figures = serving.figures(prediction)
    if name in _SERVED:
        found = figures.get(_SERVED[name])
        if found is None:
            raise NoValue(f"the load has no {name.replace('_', ' ')}"
                          + (": give `slo` in [serving]" if name == "goodput" else ""))
        return float(found)
    if GOALS[name].priced:
        an_hour = (prediction.get("cost") or {}).get("usd_per_gpu_hour")
        if not an_hour:
            raise NoValue(no_price(prediction, "output_tokens_per_second"))
        rate = figures.get("output_tokens_per_second" if name == "cost_per_output_token" else "total_tokens_per_second")
        if not rate:
            raise NoValue("the load completed no request")
        return an_hour * prediction["gpus"] / (rate * 3600) * 1e6
    share, _, time = name.partition("_")
    found = serving.time_ms(prediction, time, share)
    if found is None:
        raise NoValue(f"the load has no {GOALS[name].title}: are there requests of more than one token?")
    return found
