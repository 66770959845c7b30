"""What values a parameter of the space can take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from maya import MayaError
from maya.search.expression import Expression

MAX_VALUES = 100_000  # of one parameter
MAX_DIVIDED = 10**12


class DomainError(MayaError):
    """A parameter's values are not described as they should be."""


@dataclass(frozen=True)
class Choice:
    """One of listed values."""

    options: tuple
    names: frozenset = frozenset()
    finite = True

    def values(self, bound: Mapping[str, Any]) -> Sequence:
        return self.options

    def span(self) -> Sequence:
        return self.options


@dataclass(frozen=True)
class Divisors:
    """Whole numbers that divide an expression evenly."""

    of: Expression
    least: int = 1
    most: int = 2**31
    finite = True

    @property
    def names(self) -> frozenset:
        return self.of.names

    def values(self, bound: Mapping[str, Any]) -> Sequence:
        number = self.of.value(bound)
        if not isinstance(number, int) or number < 1:
            return ()  # not a positive integer: it has no divisors
        if number > MAX_DIVIDED:
            raise DomainError(f"divisors of {number}: at most {MAX_DIVIDED} is allowed")
        found = set()
        for divisor in range(1, math.isqrt(number) + 1):
            if number % divisor == 0:
                found |= {divisor, number // divisor}
        return tuple(sorted(d for d in found if self.least <= d <= self.most))


@dataclass(frozen=True)
class Floats:
    """Any real number of an interval; samplers draw from it, it cannot be enumerated."""

    low: float
    high: float
    log: bool = False
    names: frozenset = frozenset()
    finite = False

    def values(self, bound: Mapping[str, Any]) -> Sequence:
        raise DomainError("a parameter of real numbers without a step cannot be enumerated")


@dataclass(frozen=True)
class Parameter:
    """A dimension of the space. `when`: only configurations where it holds have it; the others have `otherwise`."""

    name: str
    domain: Choice | Divisors | Floats
    when: Expression | None = None
    otherwise: Any = None
    kind: str = "choice"  # as the space wrote it: choice, integers, powers_of_two, divisors_of, floats, boolean

    @property
    def names(self) -> frozenset:
        return self.domain.names | (self.when.names if self.when else frozenset())

    def values(self, bound: Mapping[str, Any]) -> Sequence:
        if self.when is not None and not self.when.holds(bound):
            return (self.otherwise,)
        return self.domain.values(bound)


_KINDS = ("choice", "integers", "powers_of_two", "divisors_of", "floats", "boolean")
_OPTIONS = {"when", "otherwise", "step", "min", "max", "log"}


def _pair(kind: str, value: Any, whole: bool) -> tuple:
    good = isinstance(value, list) and len(value) == 2
    good = good and all(isinstance(v, int if whole else (int, float)) and not isinstance(v, bool) for v in value)
    if not good or value[0] > value[1]:
        raise DomainError(f"{kind} must be [lowest, highest], found {value!r}")
    return value[0], value[1]


def _range(low: Any, high: Any, step: Any) -> tuple:
    if not isinstance(step, (int, float)) or isinstance(step, bool) or step <= 0:
        raise DomainError(f"step must be a positive number, found {step!r}")
    count = int((high - low) / step + 1e-9) + 1
    if count > MAX_VALUES:
        raise DomainError(f"{count} values; at most {MAX_VALUES} are allowed (a larger step?)")
    if isinstance(low, int) and isinstance(step, int):
        return tuple(range(low, high + 1, step))
    return tuple(round(low + i * step, 12) for i in range(count))


def parse(name: str, given: Any) -> Parameter:
    """`{ powers_of_two = [1, 8] }`, `[1, 2, 4]` or `true` of the space as a Parameter."""
    if isinstance(given, list):
        given = {"choice": given}
    if given is True:
        given = {"boolean": True}
    if not isinstance(given, dict):
        raise DomainError(f"must be a list of values or one of {', '.join(_KINDS)}, found {given!r}")
    kinds = [kind for kind in _KINDS if kind in given]
    if len(kinds) != 1:
        raise DomainError(f"must have exactly one of {', '.join(_KINDS)}, found {', '.join(kinds) or 'none'}")
    unknown = set(given) - set(kinds) - _OPTIONS
    if unknown:
        raise DomainError(f"unknown key `{sorted(unknown)[0]}` (there are {', '.join((*_KINDS, *sorted(_OPTIONS)))})")
    kind, value = kinds[0], given[kinds[0]]
    domain: Choice | Divisors | Floats
    if kind == "choice":
        if not isinstance(value, list) or not value:
            raise DomainError(f"choice must be a list with at least one value, found {value!r}")
        for option in value:
            if not isinstance(option, (int, float, str, bool)):
                raise DomainError(f"choice must have numbers, strings or booleans, found {option!r}")
        if len({(type(v), v) for v in value}) != len(value):
            raise DomainError("choice lists a value twice")
        domain = Choice(tuple(value))
    elif kind == "boolean":
        if value is not True:
            raise DomainError("boolean must be `true` (the parameter is then tried as false and true)")
        domain = Choice((False, True))
    elif kind == "integers":
        low, high = _pair(kind, value, whole=True)
        domain = Choice(_range(low, high, given.get("step", 1)))
    elif kind == "powers_of_two":
        low, high = _pair(kind, value, whole=True)
        domain = Choice(tuple(2**e for e in range(64) if max(low, 1) <= 2**e <= high))
        if not domain.options:
            raise DomainError(f"there is no power of two in {value!r}")
    elif kind == "divisors_of":
        text = str(value) if isinstance(value, int) else value
        domain = Divisors(Expression(text), given.get("min", 1), given.get("max", 2**31))
    else:
        low, high = _pair(kind, value, whole=False)
        domain = Choice(_range(float(low), float(high), given["step"])) if "step" in given else Floats(
            float(low), float(high), bool(given.get("log")))
    if "otherwise" in given and "when" not in given:
        raise DomainError("otherwise is for configurations where `when` does not hold, and there is no `when`")
    when = Expression(given["when"]) if "when" in given else None
    return Parameter(name, domain, when, given.get("otherwise"), kind)
