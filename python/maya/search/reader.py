"""Reads a space from its TOML. Errors name file, line and key."""

from __future__ import annotations

import pathlib
import re
import shlex
from typing import Any, Iterable, Mapping, Sequence

from maya import MayaError
from maya.search import domain, objective
from maya.search.expression import Expression
from maya.search.names import Names
from maya.search.place import Locator, SpaceError, suggestion
from maya.search.serving import Serving
from maya.search.space import Bound, Fidelity, File, Limits, Pruning, Rule, Space, TrialLimits
from maya.search.template import Template
from maya.serve_bench import metrics


def toml_problem(path: pathlib.Path, text: str, problem: str) -> str:
    place = re.search(r"\(at line (\d+), column (\d+)\)", problem)
    if place:
        return f"{path}:{place[1]}:{place[2]}: {problem[:place.start()].strip()}"
    lines = text.count("\n") + 1
    return f"{path}:{lines}: {problem.replace(' (at end of document)', ', at the end of the file')}"


_TABLES = {
    "name",
    "command",
    "directory",
    "constants",
    "parameters",
    "derived",
    "constraints",
    "flags",
    "environment",
    "files",
    "cluster",
    "objective",
    "limits",
    "trial",
    "fidelity",
    "prune",
    "baseline",
    "serving",
}
_WORDS = re.compile(r"(?:[^\s{}]|\{[^{}]*\})+")  # of a load, with their placeholders
_TRAINING_ONLY = ("fidelity", "prune.flops", "prune.trades_time_for_memory", "trial.stop_after", "objective.tokens",
                  "objective.tokens_per_step", "limits.memory_headroom")


class Reader:
    """Turns the parsed TOML into a Space; one method per table."""

    def __init__(self, path: pathlib.Path, text: str, table: dict, command: Sequence[str] | None, cluster: str | None,
                 templates: bool):
        self.path, self.text, self.table, self.templates = path, text, table, templates
        self.where = Locator(path, text)
        self.command_words, self.cluster_given = command, cluster

    def fail(self, table: str, key: str, problem: str) -> SpaceError:
        place = f"[{table}] " if table else ""
        return SpaceError(f"{self.where.of(table, key)}: {place}{key + ': ' if key else ''}{problem}")

    def section(self, name: str) -> dict:
        value = self.table.get(name, {})
        if not isinstance(value, dict):
            raise self.fail("", name, f"must be a table, found {value!r}")
        return value

    def known(self, name: str, allowed: Iterable[str]) -> dict:
        section = self.section(name)
        for key in section:
            if key not in allowed:
                raise self.fail(name, key, f"unknown key{suggestion(key, allowed)}")
        return section

    def number(self, table: str, key: str, default: Any, least: float = 0.0) -> Any:
        value = self.section(table).get(key, default)
        if value is default:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= least:
            raise self.fail(table, key, f"must be a number of at least {least:g}, found {value!r}")
        return value

    def expression(self, table: str, key: str, text: Any) -> Expression:
        if isinstance(text, (int, float)) and not isinstance(text, bool):
            text = repr(text)
        try:
            return Expression(text)
        except MayaError as problem:
            raise self.fail(table, key, str(problem)) from None

    def template(self, table: str, key: str, text: Any, file: bool = False) -> Template:
        if isinstance(text, (int, float)):
            text = str(text)
        if not isinstance(text, str):
            raise self.fail(table, key, f"must be a string, found {text!r}")
        try:
            return Template(text, file)
        except MayaError as problem:
            raise self.fail(table, key, str(problem)) from None

    def space(self) -> Space:
        for key in self.table:
            if key not in _TABLES:
                raise self.fail("" if not isinstance(self.table[key], dict) else key,
                                "" if isinstance(self.table[key], dict) else key,
                                f"unknown {'table' if isinstance(self.table[key], dict) else 'key'}"
                                f"{suggestion(key, _TABLES)}")
        constants, parameters, derived = self.constants(), self.parameters(), self.derived()
        space = Space(
            path=self.path, text=self.text, name=str(self.table.get("name", self.path.stem)), command=self.command(),
            constants=constants, parameters=parameters, derived=derived, rules=self.rules(derived), flags=self.flags(),
            environment={k: self.template("environment", k, v) for k, v in self.section("environment").items()},
            files=self.files(), **self.cluster(), objective=self.objective(), limits=self.limits(), trial=self.trial(),
            fidelity=self.fidelity(), pruning=self.pruning(), baseline=dict(self.section("baseline")),
            directory=self.table.get("directory"), serving=self.serving(), _where=self.where)
        Names(self, space).check()
        return space

    def command(self) -> list[Template]:
        words: Any = self.command_words if self.command_words else self.table.get("command")
        if words is None:
            raise SpaceError(f"{self.path}: no command to search over; give `command = [...]` or write it after --")
        if isinstance(words, str):
            try:
                words = shlex.split(words)
            except ValueError as problem:
                raise self.fail("", "command", f"{problem}") from None
        if (
            not isinstance(words, (list, tuple))
            or not words
            or not all(isinstance(w, (str, int, float)) for w in words)
        ):
            raise self.fail("", "command", "must be a list of words")
        return [self.template("", "command", word) for word in words]

    def constants(self) -> dict[str, Any]:
        for key, value in self.section("constants").items():
            if not isinstance(value, (int, float, str, bool)):
                raise self.fail("constants", key, f"must be a number, a string or a boolean, found {value!r}")
        return dict(self.section("constants"))

    def parameters(self) -> dict[str, domain.Parameter]:
        found = {}
        for name, given in self.section("parameters").items():
            try:
                found[name] = domain.parse(name, given)
            except MayaError as problem:
                raise self.fail("parameters", name, str(problem)) from None
        if not found:
            raise SpaceError(f"{self.where.of('parameters')}: [parameters] has nothing to search over")
        return found

    def derived(self) -> dict[str, Expression]:
        return {name: self.expression("derived", name, text) for name, text in self.section("derived").items()}

    def rules(self, derived: Mapping[str, Expression]) -> list[Rule]:
        given = self.table.get("constraints", [])
        if isinstance(given, dict):
            rules = [Rule(name, self.expression("constraints", name, text)) for name, text in given.items()]
        elif isinstance(given, list):
            rules = [Rule("", self.expression("", "constraints", text)) for text in given]
        else:
            raise self.fail("", "constraints", "must be a list or a table of expressions")
        # A division with a remainder (`dp = world / (tp * pp)`) is not a valid configuration.
        return rules + [Rule("", e, whole=name) for name, e in derived.items() if "/" in e.text.replace("//", "")]

    def flags(self) -> dict[str, Expression]:
        return {flag: self.expression("flags", flag, text) for flag, text in self.section("flags").items()}

    def files(self) -> dict[str, File]:
        found = {}
        for name, given in self.section("files").items():
            if not isinstance(given, dict) or len({"text", "template"} & set(given)) != 1:
                raise self.fail(
                    "files", name, 'must be { name = "…", template = "path" } or { name = "…", text = "…" }'
                )
            file_name = given.get("name", name)
            if not isinstance(file_name, str) or pathlib.PurePath(file_name).name != file_name:
                raise self.fail("files", name, f"name must be a plain file name, found {file_name!r}")
            text = given.get("text")
            if text is None and not self.templates:
                text = "".join(f"{{{{ {name} }}}}" for name in self.section("parameters"))
            if text is None:
                source = self.path.parent / str(given["template"])
                try:
                    text = source.read_text()
                except (OSError, UnicodeDecodeError) as problem:
                    raise self.fail("files", name, f"cannot read the template {source}: {problem}") from None
            found[name] = File(name, file_name, self.template("files", name, text, file=True))
        return found

    def cluster(self) -> dict[str, Any]:
        section = self.known("cluster", {"name", "nodes", "set"})
        name = self.cluster_given or section.get("name", "dgx-h100")
        nodes = section.get("nodes")
        settings = section.get("set", {})
        if not isinstance(settings, dict):
            raise self.fail("cluster", "set", "must be a table of figures")
        return {
            "cluster_name": self.template("cluster", "name", name),
            "cluster_nodes": None
            if nodes is None or self.cluster_given
            else self.expression("cluster", "nodes", nodes),
            "cluster_set": {k: self.template("cluster.set", k, v) for k, v in settings.items()},
        }

    def objective(self) -> objective.Objective:
        section = self.known("objective", {"goal", "tokens_per_step", "tokens"})
        goals = section.get("goal", "cost_per_output_token" if "serving" in self.table else "step_time")
        goals = [goals] if isinstance(goals, str) else goals
        if not isinstance(goals, list) or not goals:
            raise self.fail("objective", "goal", f"must be a goal or a list of goals, found {goals!r}")
        known = objective.goals_of("serving" if "serving" in self.table else "training")
        for goal in goals:
            if goal not in objective.GOALS:
                raise self.fail("objective", "goal", f"unknown goal {goal!r}{suggestion(str(goal), known)}; "
                                f"there are {', '.join(known)}")
            if goal not in known:
                raise self.fail("objective", "goal", f"{goal} is a goal of "
                                f"{'training' if 'serving' in self.table else 'serving'} (this space has "
                                f"{'a' if 'serving' in self.table else 'no'} [serving]); there are {', '.join(known)}")
        tokens = self.number("objective", "tokens", None, 1)
        for goal in goals:
            if objective.GOALS[goal].needs_tokens and tokens is None:
                raise self.fail("objective", "goal", f"{goal} needs `tokens`, how many tokens are to be trained on")
        per_step = section.get("tokens_per_step")
        return objective.Objective(tuple(goals), None if per_step is None else
                                   self.expression("objective", "tokens_per_step", per_step), tokens)

    def serving(self) -> Serving | None:
        if "serving" not in self.table:
            return None
        section = self.known("serving", {"load", "limit", "capacity", "slo", "url", "warmup"})
        load = section.get("load")
        words = _WORDS.findall(load) if isinstance(load, str) else load
        if not isinstance(words, list) or not words:
            raise self.fail("serving", "load", 'must say what is asked of the engine: "rate=4 requests=64 input=1024 '
                            'output=128", or a list of words, as for `maya serve-bench --load`')
        given = {key: self.template("serving", key, section[key]) for key in ("limit", "slo", "url") if key in section}
        for key in ("limit", "slo"):
            if key in given and not given[key].names:
                try:
                    metrics.limits(given[key].text, of_load=key == "limit")
                except MayaError as problem:
                    raise self.fail("serving", key, str(problem)) from None
        capacity = section.get("capacity", False)
        if not isinstance(capacity, bool) or (capacity and "limit" not in given):
            raise self.fail("serving", "capacity",
                            "must be true or false; true needs `limit`, what the load has to keep")
        for place in _TRAINING_ONLY:
            table, _, key = place.partition(".")
            if table in self.table and (not key or key in self.section(table)):
                raise self.fail(table, key, "is about training steps; a space with [serving] has none")
        return Serving(tuple(self.template("serving", "load", word) for word in words), capacity=capacity,
                       warmup=int(self.number("serving", "warmup", 1)), **given)

    def limits(self) -> Limits:
        self.known("limits", {"memory_headroom", "gpus", "usd_per_hour", "hours", "usd"})
        headroom = self.number("limits", "memory_headroom", 0.0)
        if headroom >= 1:
            raise self.fail("limits", "memory_headroom", f"must be a share below 1 (0.05 is 5 %), found {headroom:g}")
        limits = Limits(headroom, self.number("limits", "gpus", None, 1), self.number("limits", "usd_per_hour", None),
                        self.number("limits", "hours", None), self.number("limits", "usd", None))
        if (limits.hours is not None or limits.usd is not None) and "tokens" not in self.section("objective"):
            raise self.fail("limits", "hours" if limits.hours is not None else "usd",
                            "needs `tokens` in [objective], how many tokens are to be trained on")
        return limits

    def trial(self) -> TrialLimits:
        section = self.known("trial", {"timeout_s", "memory_gib", "stop_after", "ranks"})
        stop = section.get("stop_after", "auto")
        if not (stop in ("auto", "never") or (isinstance(stop, int) and stop > 0)):
            raise self.fail("trial", "stop_after", f"must be a number of steps, auto or never, found {stop!r}")
        served = "serving" in self.table
        return TrialLimits(self.number("trial", "timeout_s", 3600.0 if served else 300.0, 1),
                           self.number("trial", "memory_gib", None, 0.01), str(stop),
                           str(section.get("ranks", "all" if served else "unique")))

    def fidelity(self) -> Fidelity | None:
        section = self.known("fidelity", {"parameter", "at"})
        if not section:
            return None
        name, at = section.get("parameter"), section.get("at")
        if not isinstance(name, str):
            raise self.fail(
                "fidelity", "parameter", "must be the name of the depth: a constant, parameter or derived value"
            )
        if not isinstance(at, list) or len(at) != 2:
            raise self.fail("fidelity", "at", "must be two values or expressions, the depths that are run")
        return Fidelity(name, tuple(self.expression("fidelity", "at", text) for text in at))

    def pruning(self) -> Pruning:
        section = self.known(
            "prune",
            {
                "memory_increases_with",
                "memory_decreases_with",
                "trades_time_for_memory",
                "flops",
                "dtype",
                "bubble",
                "gpus",
            },
        )

        def names(key: str) -> tuple[str, ...]:
            value = section.get(key, [])
            if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
                raise self.fail("prune", key, f"must be a list of parameter names, found {value!r}")
            return tuple(value)

        bound = None
        if "flops" in section:
            bound = Bound(self.expression("prune", "flops", section["flops"]), str(section.get("dtype", "bf16")),
                          *(self.expression("prune", key, section[key]) if key in section else None
                            for key in ("bubble", "gpus")))
        return Pruning(names("memory_increases_with"), names("memory_decreases_with"), names("trades_time_for_memory"),
                       bound)
