"""Finds the valid configurations of a space by backtracking: a value is rejected as soon as a rule that can be checked
does not hold, so that constraints make a large product small before it is built."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from typing import Any, Iterator, Mapping

from maya import MayaError
from maya.search.domain import DomainError, Floats
from maya.search.expression import ExpressionError, Missing
from maya.search.space import Rule, Space

Values = dict  # name → value, of parameters, constants and derived


class NoConfiguration(MayaError):
    """The constraints leave nothing; the message names the smallest set of them that conflicts."""


@dataclass(frozen=True)
class _Level:
    """One parameter of the search tree, with the derived values and rules that can be evaluated once it has a value."""

    parameter: str
    derived: tuple[str, ...]
    rules: tuple[int, ...]


class Tree:
    """The order in which parameters get their values, and the search over it."""

    def __init__(self, space: Space, rules: list[Rule] | None = None):
        self.space = space
        self.rules = space.rules if rules is None else rules
        self.levels = self._order()

    def _order(self) -> list[_Level]:
        space = self.space
        bound = {*space.constants, *space.files}
        waiting_parameters = dict(space.parameters)
        waiting_derived = dict(space.derived)
        waiting_rules = dict(enumerate(self.rules))
        levels: list[_Level] = []

        def settle(known: set[str], derived: dict, rules: dict) -> tuple[list[str], list[int]]:
            names: list[str] = []
            while True:
                ready = [n for n, e in derived.items() if n not in known and e.names <= known]
                if not ready:
                    break
                names += ready
                known.update(ready)
            return names, [
                i for i, r in rules.items() if (r.expression.names | ({r.whole} if r.whole else set())) <= known
            ]

        names, ready = settle(bound, waiting_derived, waiting_rules)
        levels.append(_Level("", tuple(names), tuple(ready)))
        for name in names:
            del waiting_derived[name]
        for index in ready:
            del waiting_rules[index]
        while waiting_parameters:
            # The next parameter is the one that allows most rules to be checked; ties keep the order of the file.
            def gain(name: str) -> int:
                known = bound | {name}
                names, rules = settle(known, waiting_derived, waiting_rules)
                return len(rules) * 4 + len(names)

            ready_parameters = [n for n, p in waiting_parameters.items() if p.names <= bound]
            if not ready_parameters:  # cannot happen after check_cycles
                raise MayaError("parameters depend on each other in a circle")
            name = max(ready_parameters, key=gain)
            bound.add(name)
            del waiting_parameters[name]
            names, ready = settle(bound, waiting_derived, waiting_rules)
            levels.append(_Level(name, tuple(names), tuple(ready)))
            for derived in names:
                del waiting_derived[derived]
            for index in ready:
                del waiting_rules[index]
        return levels

    def _settled(self, level: _Level, values: Values, enabled: frozenset | None) -> bool:
        for name in level.derived:
            try:
                values[name] = self.space.derived[name].value(values)
            except Missing:
                values[name] = None
        for index in level.rules:
            if enabled is not None and index not in enabled:
                continue
            rule = self.rules[index]
            try:
                if rule.whole:
                    if isinstance(values[rule.whole], float):
                        return False
                elif not rule.expression.holds(values):
                    return False
            except Missing:
                continue  # the rule is about a parameter that this configuration does not have
        return True

    def walk(self, enabled: frozenset | None = None, shuffle: random.Random | None = None) -> Iterator[Values]:
        """Every valid configuration. `enabled`: only these rules count. With `shuffle` in random order."""
        values: Values = dict(self.space.constants)
        if not self._settled(self.levels[0], values, enabled):
            return
        yield from self._descend(1, values, enabled, shuffle)

    def _descend(self, depth: int, values: Values, enabled: frozenset | None,
                 shuffle: random.Random | None) -> Iterator[Values]:
        if depth == len(self.levels):
            yield dict(values)
            return
        level = self.levels[depth]
        parameter = self.space.parameters[level.parameter]
        options = self._options(parameter, values)
        if shuffle:
            options = shuffle.sample(options, len(options))
        for option in options:
            values[level.parameter] = option
            if self._settled(level, values, enabled):
                yield from self._descend(depth + 1, values, enabled, shuffle)
        for name in (level.parameter, *level.derived):
            values.pop(name, None)

    @staticmethod
    def _options(parameter: Any, values: Mapping[str, Any]) -> list:
        if isinstance(parameter.domain, Floats):
            low, high = parameter.domain.low, parameter.domain.high
            if parameter.when is None or parameter.when.holds(values):
                return [low, (low + high) / 2, high]  # samplers use the values between
        return list(parameter.values(values))

    def complete(self, given: Mapping[str, Any]) -> Values:
        """Makes a configuration from the values of its parameters. Raises MayaError if it violates a rule."""
        values: Values = dict(self.space.constants)
        for level in self.levels:
            if level.parameter:
                parameter = self.space.parameters[level.parameter]
                if parameter.when is not None and not parameter.when.holds(values):
                    values[level.parameter] = parameter.otherwise
                elif level.parameter not in given:
                    raise MayaError(f"{level.parameter} has no value")
                else:
                    values[level.parameter] = given[level.parameter]
            if not self._settled(level, values, None):
                for index in level.rules:
                    if not self._settled(_Level("", (), (index,)), values, None):
                        raise MayaError(f"it breaks the constraint {self.rules[index]}")
        return values


def identity(space: Space, values: Mapping[str, Any]) -> tuple:
    """What makes two configurations the same: the values of the parameters."""
    return tuple(values.get(name) for name in space.parameters)


def configurations(space: Space, most: int) -> tuple[list[Values], bool]:
    """The first `most` valid configurations, and whether these are all."""
    found = list(itertools.islice(Tree(space).walk(), most + 1))
    return found[:most], len(found) <= most


def require_satisfiable(space: Space) -> None:
    """Raises NoConfiguration with the smallest conflicting set of constraints, if there is no configuration."""
    tree = Tree(space)
    try:
        if _satisfiable(tree, None):
            return
    except (ExpressionError, DomainError) as problem:
        raise NoConfiguration(f"{space.path}: {problem}") from None
    conflict = _conflict(tree)
    if not conflict:
        raise NoConfiguration(
            f"{space.path}: a parameter has no value at all: `divisors_of` of what is not a whole number, "
            "or min above max"
        )
    lines = "\n".join(f"  {tree.rules[i]}" for i in conflict)
    what = "this constraint holds for no configuration" if len(conflict) == 1 else (
        "these constraints cannot hold together, each subset of them can")
    raise NoConfiguration(f"{space.path}: {what}:\n{lines}")


def _satisfiable(tree: Tree, enabled: frozenset | None) -> bool:
    return next(tree.walk(enabled), None) is not None


def _conflict(tree: Tree) -> list[int]:
    every = range(len(tree.rules))
    if not _satisfiable(tree, frozenset()):
        return []
    # Small sets are tried first, so that the answer is a smallest one; larger answers are only minimal.
    budget = 2000
    for size in (1, 2, 3):
        for subset in itertools.combinations(every, size):
            budget -= 1
            if budget < 0:
                break
            if not _satisfiable(tree, frozenset(subset)):
                return list(subset)
    needed = list(every)
    for index in every:
        without = frozenset(i for i in needed if i != index)
        if not _satisfiable(tree, without):
            needed = sorted(without)
    return needed
