"""The answers of Maya as typed objects. The fields are those of prediction.json (docs/prediction.md)."""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass, field
from typing import Any, Iterable

from maya import notebook


def _made(kind: type, data: Any) -> Any:
    """Makes a dataclass from JSON. Missing fields keep their defaults; fields of newer versions are only in `raw`."""
    if data is None:
        return None
    known = {f.name for f in dataclasses.fields(kind)}
    return kind(**{name: value for name, value in data.items() if name in known})


def data_frame(rows: Iterable[Any]) -> Any:
    """A pandas DataFrame of dataclasses or dicts."""
    try:
        import pandas
    except ImportError:
        raise ImportError("to_dataframe() needs pandas: pip install pandas") from None
    return pandas.DataFrame([dataclasses.asdict(r) if dataclasses.is_dataclass(r) else r for r in rows])


@dataclass(frozen=True)
class Step:
    """Time of a training step: the mean and its 80 % interval."""

    ms: float
    low_ms: float = 0
    high_ms: float = 0
    count: int = 0
    found_by: str = ""


@dataclass(frozen=True)
class Breakdown:
    """Parts of the step in ms, as a mean over the GPUs. compute + exposed_communication + copy + idle = the step."""

    compute: float = 0
    communication: float = 0
    exposed_communication: float = 0
    copy: float = 0
    idle: float = 0
    host_bound: float = 0
    pipeline_bubble: float = 0
    waiting: float = 0


@dataclass(frozen=True)
class Throughput:
    unit: str
    per_step: float
    per_second: float
    found_by: str = ""


@dataclass(frozen=True)
class RankMemory:
    """Device memory of one rank, in bytes."""

    rank: int
    peak_bytes: int
    reserved_bytes: int = 0
    context_bytes: int = 0
    communicator_bytes: int = 0
    capacity_bytes: int = 0
    allocator_retries: int = 0

    @property
    def free_bytes(self) -> int:
        return self.capacity_bytes - self.peak_bytes


@dataclass(frozen=True)
class OutOfMemory:
    rank: int
    requested_bytes: int
    in_use_bytes: int
    capacity_bytes: int
    during_run: bool = True
    where: str = ""
    missing_bytes: int = 0
    estimated_missing_bytes: int | None = None
    in_use: list = field(default_factory=list)


@dataclass(frozen=True)
class Cost:
    usd_per_gpu_hour: float | None = None
    usd_per_step: float | None = None
    source: str = ""


@dataclass(frozen=True)
class Coverage:
    """Shares of the GPU time by the origin of the durations."""

    measured: float = 0
    fitted: float = 0
    first_principles: float = 0
    unknown: float = 0
    unknown_kernels: list = field(default_factory=list)
    unimplemented_calls: list = field(default_factory=list)


@dataclass(frozen=True)
class Op:
    """One op of the job, per GPU and step."""

    kind: str
    name: str
    sizes: str
    count: float
    ms: float
    share: float
    tflops: float = 0
    gbps: float = 0
    origin: str = ""


@dataclass(frozen=True)
class Family:
    """A family of work on the critical path of a step, with its 80 % interval."""

    family: str
    ms: float
    low_ms: float = 0
    high_ms: float = 0


@dataclass(frozen=True)
class Prediction:
    """The prediction of a run on a cluster. `raw` is the content of prediction.json."""

    cluster: str
    gpu: str
    command: str
    world_size: int
    gpus: int
    step: Step | None
    no_step: str | None
    breakdown: Breakdown
    flops_per_step: float
    mfu: float | None
    throughput: Throughput | None
    memory: list[RankMemory]
    out_of_memory: OutOfMemory | None
    cost: Cost
    coverage: Coverage
    ops: list[Op]
    families: list[Family]
    notes: list[str]
    settings: dict[str, str]
    raw: dict = field(repr=False)
    run: str | None = field(default=None, repr=False)
    question: dict = field(default_factory=dict, repr=False)

    @classmethod
    def from_json(cls, data: dict, run: str | None = None, question: dict | None = None) -> "Prediction":
        """Makes a prediction from the content of prediction.json."""
        from maya.installation import MayaError

        if not isinstance(data, dict) or data.get("version") != 1:
            version = data.get("version") if isinstance(data, dict) else None
            raise MayaError(
                f"this is not a prediction of version 1 (version {version!r}); create it again with `maya predict RUN`"
            )
        try:
            return cls(
                cluster=data["cluster"],
                gpu=data.get("gpu", ""),
                command=data.get("command", ""),
                world_size=data["world_size"],
                gpus=data.get("gpus", data["world_size"]),
                step=_made(Step, data.get("step")),
                no_step=data.get("no_step"),
                breakdown=_made(Breakdown, data.get("breakdown_ms") or {}),
                flops_per_step=data.get("flops_per_step", 0),
                mfu=data.get("mfu"),
                throughput=_made(Throughput, data.get("throughput")),
                memory=[_made(RankMemory, m) for m in data.get("memory", [])],
                out_of_memory=_made(OutOfMemory, data.get("out_of_memory")),
                cost=_made(Cost, data.get("cost") or {}),
                coverage=_made(Coverage, data.get("coverage") or {}),
                ops=[_made(Op, o) for o in data.get("ops", [])],
                families=[_made(Family, f) for f in data.get("families", [])],
                notes=list(data.get("notes", [])),
                settings=dict(data.get("settings", {})),
                raw=data,
                run=run,
                question=question or {},
            )
        except (KeyError, TypeError, AttributeError, ValueError) as problem:
            raise MayaError(
                f"this prediction is damaged ({type(problem).__name__}: {problem}); create it again with "
                "`maya predict RUN`"
            ) from None

    @property
    def step_ms(self) -> float | None:
        """Time of a step in ms, or None if no step was complete."""
        return self.step.ms if self.step else None

    @property
    def peak_bytes(self) -> int:
        """Memory of the fullest GPU."""
        return max((m.peak_bytes for m in self.memory), default=0)

    def __getitem__(self, name: str) -> Any:
        """Fields of prediction.json by name: prediction["breakdown_ms"]["compute"]."""
        return self.raw[name]

    def to_dataframe(self, table: str = "ops") -> Any:
        """`ops`, `families`, `memory`, or `summary` (one row) as a pandas DataFrame."""
        if table == "summary":
            return data_frame([self.summary()])
        if table not in ("ops", "families", "memory"):
            raise ValueError(f"no table {table!r}: expected ops, families, memory or summary")
        return data_frame(getattr(self, table))

    def summary(self) -> dict:
        """The figures for a table of several predictions."""
        out: dict[str, Any] = {"cluster": self.cluster, "gpus": self.gpus, "step_ms": self.step_ms}
        if self.step:
            out |= {"low_ms": self.step.low_ms, "high_ms": self.step.high_ms}
        if self.throughput:
            out |= {f"{self.throughput.unit}_per_second": self.throughput.per_second}
        out |= {"mfu": self.mfu, "usd_per_step": self.cost.usd_per_step, "peak_bytes": self.peak_bytes}
        out |= dataclasses.asdict(self.breakdown)
        return out

    def timeline(self) -> "Timeline":
        """When each kernel, copy and collective would run."""
        from maya import api

        return api.timeline(self)

    def page(self) -> str:
        """The page of `maya report` for this prediction, as HTML."""
        from maya import api

        return api.page(self)

    def _repr_html_(self) -> str:
        return notebook.prediction(self)

    def __str__(self) -> str:
        if self.step:
            text = f"{self.step.ms:.4g} ms a step ({self.step.low_ms:.4g} – {self.step.high_ms:.4g}) on {self.cluster}"
        else:
            text = f"no step on {self.cluster}: {self.no_step}"
        return f"{text}, {self.peak_bytes / 2**30:.1f} GiB"


class Span(typing.NamedTuple):
    """One op that ran on a GPU."""

    ranks: list[int]
    stream: int
    kind: str
    name: str
    work: str
    issue_us: float
    start_us: float
    end_us: float
    step: int | None

    @property
    def us(self) -> float:
        return self.end_us - self.start_us


@dataclass(frozen=True)
class Timeline:
    """The predicted timeline of one rank of each class."""

    spans: list[Span] = field(repr=False)
    steps: list[dict]

    @classmethod
    def from_json(cls, data: dict) -> "Timeline":
        columns, ops, ranks, steps = data["spans"], data["ops"], data["ranks"], data["steps"]
        nothing = {"kind": "host_function", "name": "", "work": ""}
        spans = []
        for c, stream, op, issue, start, end in zip(
            columns["class"],
            columns["stream"],
            columns["op"],
            columns["issue_us"],
            columns["start_us"],
            columns["end_us"],
        ):
            what = ops[op] if op >= 0 else nothing
            step = next((k for k, s in enumerate(steps) if s["start_us"] <= start < s["end_us"]), None)
            spans.append(Span(ranks[c], stream, what["kind"], what["name"], what["work"], issue, start, end, step))
        return cls(spans, steps)

    def __len__(self) -> int:
        return len(self.spans)

    def __iter__(self) -> Any:
        return iter(self.spans)

    def to_dataframe(self) -> Any:
        """One row per span."""
        return data_frame({**s._asdict(), "us": s.us} for s in self.spans)

    def _repr_html_(self) -> str:
        return notebook.timeline(self)


@dataclass(frozen=True)
class Estimate:
    """The predicted duration of one op that runs alone on one GPU."""

    op: str
    gpu: str
    us: float
    low_us: float
    high_us: float
    origin: str
    tflops: float
    gbps: float
    peak_share: float
    warning: str = ""

    def _repr_html_(self) -> str:
        return notebook.table([dataclasses.asdict(self)])


@dataclass(frozen=True)
class NetRow:
    """One size of a collective."""

    bytes: int
    us: float
    low_us: float
    high_us: float
    algorithm: str
    protocol: str
    channels: int
    algbw_gbps: float
    busbw_gbps: float
    origin: str


@dataclass(frozen=True)
class NetTable:
    """Times of a collective on a cluster by size, in the format of nccl-tests."""

    cluster: str
    collective: str
    ranks: int
    rows: list[NetRow]

    def __iter__(self) -> Any:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_dataframe(self) -> Any:
        return data_frame(self.rows)

    def _repr_html_(self) -> str:
        return notebook.table([dataclasses.asdict(row) for row in self.rows])


@dataclass(frozen=True)
class Comparison:
    """Several predictions. The others are compared with the first."""

    names: list[str]
    predictions: list[Prediction] = field(repr=False)

    def rows(self) -> list[dict]:
        """One row per prediction. `against_first` is its step divided by that of the first."""
        first = self.predictions[0].step_ms
        out = []
        for name, prediction in zip(self.names, self.predictions):
            ratio = prediction.step_ms / first if first and prediction.step_ms else None
            out.append({"run": name, **prediction.summary(), "against_first": ratio})
        return out

    def to_dataframe(self) -> Any:
        return data_frame(self.rows())

    def page(self) -> str:
        """A self-contained HTML page with the differences by part of the step and by op."""
        from maya import compare_page

        return compare_page.html_of(self.names, [p.raw for p in self.predictions])

    def _repr_html_(self) -> str:
        return notebook.comparison(self)
