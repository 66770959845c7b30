"""SPACE.toml: the configurations, how each changes the command, and the goals and limits of the search.

`Space.load(path)` reads and checks everything that can be checked before a trial runs; errors name file and line.
The format is described in docs/search.md.
"""

from __future__ import annotations

import pathlib
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

from maya.search import domain, objective
from maya.search.expression import Expression
from maya.search.place import Locator, SpaceError
from maya.search.serving import Serving
from maya.search.template import Template

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    try:
        import tomli as tomllib  # type: ignore[no-redef]
    except ModuleNotFoundError:
        tomllib = None  # type: ignore[assignment]

MAX_FILE = 1 << 20


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
    serving: Serving | None = None
    _where: Locator | None = field(default=None, repr=False)

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
        from maya.search.reader import Reader, toml_problem

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
            raise SpaceError(toml_problem(path, text, str(problem))) from None
        return Reader(path, text, table, command, cluster, templates).space()

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
