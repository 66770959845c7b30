"""The names of a space: every one that is used exists, every parameter is used, nothing depends on itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Iterable

from maya.search.place import suggestion
from maya.search.serving import PORT

if TYPE_CHECKING:
    from maya.search.reader import Reader
    from maya.search.space import Space

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")
_RESERVED = {"and", "or", "not", "in", "if", "else", "true", "false", "True", "False", "flags"}


class Names:
    """Every name that is used exists, every parameter is used, nothing depends on itself."""

    def __init__(self, reader: "Reader", space: "Space"):
        self.reader, self.space = reader, space
        self.all = {*space.constants, *space.parameters, *space.derived, *space.files}
        if space.serving:
            self.all.add(PORT)

    def check(self) -> None:
        space = self.space
        for table, names in (
            ("constants", space.constants),
            ("parameters", space.parameters),
            ("derived", space.derived),
            ("files", space.files),
        ):
            for name in names:
                if not _NAME.match(name) or name in _RESERVED:
                    raise self.reader.fail(table, name, "is no name for an expression (letters, digits and _ only)")
                tables = [t for t in ("constants", "parameters", "derived", "files") if name in self.reader.section(t)]
                if len(tables) > 1:
                    raise self.reader.fail(tables[1], name, f"is also in [{tables[0]}]")
        self.check_uses()
        self.check_cycles()
        self.check_baseline()

    def require(self, table: str, key: str, names: Iterable[str], placeholder: bool = False) -> None:
        for name in sorted(names):
            if name not in self.all:
                what = f"the placeholder {{{name}}}" if placeholder else f"`{name}`"
                near = suggestion(name, self.all)
                raise self.reader.fail(
                    table, key, f"{what} is no parameter, constant or derived value"
                    f"{near + '?' if near and not near.endswith('?') else near}"
                    f"{'' if near else '; parameters are ' + ', '.join(self.space.parameters)}")

    def check_uses(self) -> None:
        space, used = self.space, set()
        started: list[tuple[str, str, frozenset, bool]] = []  # arguments and variables that a trial is started with
        for word in space.command:
            started.append(("", "command", word.names - {"flags"}, True))
        started += [("environment", k, t.names, True) for k, t in space.environment.items()]
        started += [("files", f.name, f.template.names, True) for f in space.files.values()]
        started += [("flags", k, e.names, False) for k, e in space.flags.items()]
        started.append(("cluster", "name", space.cluster_name.names, True))
        started += [("cluster.set", k, t.names, True) for k, t in space.cluster_set.items()]
        if space.serving:
            started += [("serving", k, t.names, True) for k, all_of in space.serving.templates.items() for t in all_of]
        if space.cluster_nodes:
            started.append(("cluster", "nodes", space.cluster_nodes.names, False))
        for table, key, names, placeholder in started:
            self.require(table, key, names, placeholder)
            used |= names
            for name in names if placeholder else ():
                parameter = space.parameters.get(name)
                if parameter and parameter.when and parameter.otherwise is None:
                    raise self.reader.fail(
                        "parameters",
                        name,
                        f"has `when` but no `otherwise`, and {{{name}}} stands in "
                        f"{'[' + table + '] ' if table else ''}{key}; give `otherwise`, or use [flags], "
                        "which leave out what has no value",
                    )
        for name, parameter in space.parameters.items():
            self.require("parameters", name, parameter.names)
        for name, expression in space.derived.items():
            self.require("derived", name, expression.names)
        for rule in space.rules:
            self.require("constraints" if rule.name else "", rule.name or "constraints", rule.expression.names)
        if space.objective.tokens_per_step:
            self.require("objective", "tokens_per_step", space.objective.tokens_per_step.names)
        if space.pruning.bound:
            self.require("prune", "flops", space.pruning.bound.flops.names)
            for key in ("bubble", "gpus"):
                expression = getattr(space.pruning.bound, key)
                self.require("prune", key, expression.names if expression else ())
        for key in ("memory_increases_with", "memory_decreases_with", "trades_time_for_memory"):
            for name in getattr(space.pruning, key):
                if name not in space.parameters:
                    raise self.reader.fail(
                        "prune", key, f"`{name}` is no parameter{suggestion(name, space.parameters)}"
                    )
        if space.fidelity:
            self.require("fidelity", "parameter", {space.fidelity.name})
            for expression in space.fidelity.at:
                self.require("fidelity", "at", expression.names)
        self.check_all_used(used)

    def check_all_used(self, used: set[str]) -> None:
        space, reached = self.space, set()
        waiting = list(used)
        while waiting:
            name = waiting.pop()
            if name in reached:
                continue
            reached.add(name)
            if name in space.derived:
                waiting += space.derived[name].names
        for name in space.parameters:
            if name not in reached:
                raise self.reader.fail("parameters", name, "is in nothing that a trial is started with: write "
                                       f"{{{name}}} into the command, or use it in [flags], [environment], [files] or "
                                       "[cluster]")
        for name in space.files:
            if name not in reached:
                raise self.reader.fail(
                    "files",
                    name,
                    f"is written for each trial but nothing reads it; write {{{name}}}, its path, into the command",
                )

    def check_cycles(self) -> None:
        space = self.space
        edges = {n: p.names for n, p in space.parameters.items()} | {n: e.names for n, e in space.derived.items()}
        state: dict[str, int] = {}

        def visit(name: str, trail: tuple[str, ...]) -> None:
            if state.get(name) == 2 or name not in edges:
                return
            if name in trail:
                table = "derived" if name in space.derived else "parameters"
                cycle = " → ".join((*trail[trail.index(name):], name))
                raise self.reader.fail(table, name, f"depends on itself ({cycle})")
            for other in sorted(edges[name]):
                visit(other, (*trail, name))
            state[name] = 2

        for name in edges:
            visit(name, ())

    def check_baseline(self) -> None:
        for name in self.space.baseline:
            if name not in self.space.parameters:
                raise self.reader.fail("baseline", name, f"is no parameter{suggestion(name, self.space.parameters)}")
            if not isinstance(self.space.baseline[name], (int, float, str, bool)):
                raise self.reader.fail("baseline", name, f"must be one value, found {self.space.baseline[name]!r}")
        missing = [n for n, p in self.space.parameters.items() if n not in self.space.baseline and not p.when]
        if self.space.baseline and missing:
            raise self.reader.fail("baseline", "", f"does not say what {', '.join(missing)} is")
