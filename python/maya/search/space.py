"""SPACE.toml: the configurations, how each changes the command, and the goals and limits of the search.

`Space.load(path)` reads and checks everything that can be checked before a trial runs; errors name file and line.
The format is described in docs/search.md.
"""

from __future__ import annotations

import difflib
import pathlib
import re
import shlex
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, Sequence

from maya import MayaError
from maya.search import domain, objective
from maya.search.expression import Expression
from maya.search.template import Template

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    try:
        import tomli as tomllib  # type: ignore[no-redef]
    except ModuleNotFoundError:
        tomllib = None  # type: ignore[assignment]

MAX_FILE = 1 << 20


class SpaceError(MayaError):
    """SPACE.toml is wrong; the message names the file, the line and what to do."""


@dataclass(frozen=True)
class Rule:
    """A constraint on configurations. `whole`: a derived value must be a whole number."""

    name: str
    expression: Expression
    whole: str = ""

    def __str__(self) -> str:
        if self.whole:
            return f"{self.whole} = {self.expression.text} must be a whole number"
        return f"{self.name}: {self.expression.text}" if self.name else self.expression.text


@dataclass(frozen=True)
class File:
    """A file written for each trial; its path is a placeholder of the command."""

    name: str
    file_name: str
    template: Template


@dataclass(frozen=True)
class Fidelity:
    """Cheaper trials of the same configuration: `name` is given the values of `at` in place of its own, and the step is
    extrapolated as a straight line to the real value."""

    name: str
    at: tuple[Expression, ...]


@dataclass(frozen=True)
class Bound:
    """A step can be no faster than its FLOPs at the peak of its GPUs, stretched by the pipeline's bubble."""

    flops: Expression
    dtype: str = "bf16"
    bubble: Expression | None = None  # idle time over working time
    gpus: Expression | None = None  # default: the nodes of [cluster]


@dataclass(frozen=True)
class Pruning:
    memory_increases_with: tuple[str, ...] = ()
    memory_decreases_with: tuple[str, ...] = ()
    trades_time_for_memory: tuple[str, ...] = ()  # values in ascending order of time: recomputation, offload
    bound: Bound | None = None


@dataclass(frozen=True)
class Limits:
    memory_headroom: float = 0.0  # share of the GPU's memory that must stay free
    gpus: int | None = None
    usd_per_hour: float | None = None
    hours: float | None = None  # to train [objective] tokens
    usd: float | None = None  # likewise


@dataclass(frozen=True)
class TrialLimits:
    timeout_s: float = 300.0
    memory_gib: float | None = None  # of this machine; None: learned from the first trials
    stop_after: str = "auto"
    ranks: str = "unique"


@dataclass
class Space:
    path: pathlib.Path
    text: str
    name: str
    command: list[Template]
    constants: dict[str, Any]
    parameters: dict[str, domain.Parameter]
    derived: dict[str, Expression]
    rules: list[Rule]
    flags: dict[str, Expression]
    environment: dict[str, Template]
    files: dict[str, File]
    cluster_name: Template
    cluster_nodes: Expression | None
    cluster_set: dict[str, Template]
    objective: objective.Objective
    limits: Limits
    trial: TrialLimits
    fidelity: Fidelity | None
    pruning: Pruning
    baseline: dict[str, Any]
    directory: str | None = None
    _where: "_Locator | None" = field(default=None, repr=False)

    @staticmethod
    def load(path: str | pathlib.Path, command: Sequence[str] | None = None, cluster: str | None = None) -> "Space":
        path = pathlib.Path(path)
        try:
            raw = path.read_bytes()
        except OSError as problem:
            raise SpaceError(f"cannot read the space {path}: {problem.strerror}") from None
        return Space.parse(raw, path, command, cluster)

    @staticmethod
    def parse(raw: bytes, path: pathlib.Path, command: Sequence[str] | None = None, cluster: str | None = None,
              templates: bool = True) -> "Space":
        """`templates`: read the files that [files] names; a copy of a space that is only looked at does without."""
        if len(raw) > MAX_FILE:
            raise SpaceError(f"{path}: {len(raw)} bytes; a space is at most {MAX_FILE}")
        try:
            text = raw.decode()
        except UnicodeDecodeError as problem:
            line = raw[:problem.start].count(b"\n") + 1
            raise SpaceError(f"{path}:{line}: not UTF-8 text") from None
        if tomllib is None:
            raise SpaceError("reading TOML with Python 3.10 needs tomli: pip install 'maya[search]'")
        try:
            table = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as problem:
            raise SpaceError(_toml_problem(path, text, str(problem))) from None
        return _Reader(path, text, table, command, cluster, templates).space()

    @property
    def finite(self) -> bool:
        return all(p.domain.finite for p in self.parameters.values())

    def where(self, table: str, key: str) -> str:
        return self._where.of(table, key) if self._where else str(self.path)

    def label(self, values: Mapping[str, Any]) -> str:
        """`tp=2 pp=4 recompute=full`: the parameters of a configuration for people."""
        parts = []
        for name in self.parameters:
            value = values.get(name)
            if value is None:
                continue
            if isinstance(value, bool):
                parts.append(name if value else f"no {name}")
            else:
                parts.append(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}")
        return " ".join(parts)


def _toml_problem(path: pathlib.Path, text: str, problem: str) -> str:
    place = re.search(r"\(at line (\d+), column (\d+)\)", problem)
    if place:
        return f"{path}:{place[1]}:{place[2]}: {problem[:place.start()].strip()}"
    lines = text.count("\n") + 1
    return f"{path}:{lines}: {problem.replace(' (at end of document)', ', at the end of the file')}"


class _Locator:
    """Line numbers of tables and keys: the TOML reader keeps none."""

    def __init__(self, path: pathlib.Path, text: str):
        self.path, self.lines = path, text.splitlines()

    def of(self, table: str, key: str = "") -> str:
        current, fallback = "", 0
        for number, line in enumerate(self.lines, 1):
            header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line)
            if header and "=" not in line.split("]")[0]:
                current = header[1].replace('"', "").replace("'", "")
                if current == table or (key and current == f"{table}.{key}"):
                    fallback = fallback or number
                    if not key or current == f"{table}.{key}":
                        return f"{self.path}:{number}"
                continue
            if key and current == table and re.match(rf"""\s*["']?{re.escape(key)}["']?\s*=""", line):
                return f"{self.path}:{number}"
        return f"{self.path}:{fallback}" if fallback else str(self.path)


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
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")
_RESERVED = {"and", "or", "not", "in", "if", "else", "true", "false", "True", "False", "flags"}


class _Reader:
    """Turns the parsed TOML into a Space; one method per table."""

    def __init__(self, path: pathlib.Path, text: str, table: dict, command: Sequence[str] | None, cluster: str | None,
                 templates: bool):
        self.path, self.text, self.table, self.templates = path, text, table, templates
        self.where = _Locator(path, text)
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
                raise self.fail(name, key, f"unknown key{_suggestion(key, allowed)}")
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
                                f"{_suggestion(key, _TABLES)}")
        constants, parameters, derived = self.constants(), self.parameters(), self.derived()
        space = Space(
            path=self.path, text=self.text, name=str(self.table.get("name", self.path.stem)), command=self.command(),
            constants=constants, parameters=parameters, derived=derived, rules=self.rules(derived), flags=self.flags(),
            environment={k: self.template("environment", k, v) for k, v in self.section("environment").items()},
            files=self.files(), **self.cluster(), objective=self.objective(), limits=self.limits(), trial=self.trial(),
            fidelity=self.fidelity(), pruning=self.pruning(), baseline=dict(self.section("baseline")),
            directory=self.table.get("directory"), _where=self.where)
        _Names(self, space).check()
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
        goals = section.get("goal", "step_time")
        goals = [goals] if isinstance(goals, str) else goals
        if not isinstance(goals, list) or not goals:
            raise self.fail("objective", "goal", f"must be a goal or a list of goals, found {goals!r}")
        for goal in goals:
            if goal not in objective.GOALS:
                raise self.fail("objective", "goal", f"unknown goal {goal!r}{_suggestion(str(goal), objective.GOALS)}; "
                                f"there are {', '.join(objective.GOALS)}")
        tokens = self.number("objective", "tokens", None, 1)
        for goal in goals:
            if objective.GOALS[goal].needs_tokens and tokens is None:
                raise self.fail("objective", "goal", f"{goal} needs `tokens`, how many tokens are to be trained on")
        per_step = section.get("tokens_per_step")
        return objective.Objective(tuple(goals), None if per_step is None else
                                   self.expression("objective", "tokens_per_step", per_step), tokens)

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
        return TrialLimits(self.number("trial", "timeout_s", 300.0, 1), self.number("trial", "memory_gib", None, 0.01),
                           str(stop), str(section.get("ranks", "unique")))

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


def _suggestion(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean `{near[0]}`?" if near else ""


class _Names:
    """Every name that is used exists, every parameter is used, nothing depends on itself."""

    def __init__(self, reader: _Reader, space: Space):
        self.reader, self.space = reader, space
        self.all = {*space.constants, *space.parameters, *space.derived, *space.files}

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
                near = _suggestion(name, self.all)
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
                        "prune", key, f"`{name}` is no parameter{_suggestion(name, space.parameters)}"
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
                raise self.reader.fail("baseline", name, f"is no parameter{_suggestion(name, self.space.parameters)}")
            if not isinstance(self.space.baseline[name], (int, float, str, bool)):
                raise self.reader.fail("baseline", name, f"must be one value, found {self.space.baseline[name]!r}")
        missing = [n for n, p in self.space.parameters.items() if n not in self.space.baseline and not p.when]
        if self.space.baseline and missing:
            raise self.reader.fail("baseline", "", f"does not say what {', '.join(missing)} is")
