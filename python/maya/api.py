"""`maya.run`, `predict`, `compare`, `estimate`, `net`: the verbs of the program for scripts and notebooks."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import time
from typing import Any, Mapping, Sequence, Union

from maya import files
from maya.engine import engine
from maya.installation import MayaError, call, program
from maya.results import Comparison, Estimate, NetRow, NetTable, Prediction, Timeline

PathLike = Union[str, "os.PathLike[str]"]


class Run:
    """A run directory: its recordings, its prediction, and what-ifs.

    >>> run = maya.open("maya-runs/demo")
    >>> run.exit_code
    0
    >>> run.prediction.world_size
    1
    >>> faster = run.predict(set={"scale.gemm": 0.5})
    >>> faster.step_ms < run.prediction.step_ms
    True
    """

    def __init__(self, directory: PathLike, exit_code: int | None = None):
        self.directory = pathlib.Path(directory)
        if not self.directory.is_dir():
            raise MayaError(
                f"{self.directory}: no such run directory; `maya run --out {self.directory} -- COMMAND` makes one"
            )
        self._exit_code = exit_code

    @property
    def exit_code(self) -> int | None:
        """The exit code of the command; None while it runs or if run.toml does not have it."""
        if self._exit_code is None:
            found = re.search(r"^exit_code = (-?\d+)$", self._text("run.toml"), re.M)
            self._exit_code = int(found[1]) if found else None
        return self._exit_code

    @property
    def prediction(self) -> Prediction:
        """The prediction for the cluster of the run: prediction.json, which is created if it is missing."""
        text = self._text("prediction.json")
        if not text:
            return self.predict()
        try:
            return Prediction.from_json(files.parse_json(text), str(self.directory))
        except ValueError as problem:
            raise MayaError(f"{self.directory}/prediction.json is damaged ({problem}); create it again with "
                            f"`maya predict {self.directory}`") from None

    def predict(self, cluster: str | None = None, set: Mapping[str, Any] | None = None, **options: Any) -> Prediction:
        """Calls `maya.predict` for this run."""
        return predict(self, cluster, set, **options)

    def timeline(self) -> Timeline:
        """The predicted timeline on the cluster of the run."""
        return Timeline.from_json(engine.ask("timeline", run=os.path.abspath(self.directory)))

    @property
    def report(self) -> pathlib.Path:
        """The path of report.html, which is created if it is missing."""
        path = self.directory / "report.html"
        if not path.exists():
            call(["report", str(self.directory)])
        return path

    def _text(self, name: str) -> str:
        try:
            return files.read_text(self.directory / name)
        except OSError:
            return ""

    def __fspath__(self) -> str:
        return str(self.directory)

    def _repr_html_(self) -> str:
        return self.prediction._repr_html_()

    def __repr__(self) -> str:
        return f"<Run {self.directory}>"


def open(directory: PathLike) -> Run:
    """Opens a run that `maya run` recorded earlier.

    >>> maya.open("maya-runs/demo")
    <Run maya-runs/demo>
    """
    return Run(directory)


def run(
    command: Sequence[str],
    cluster: str = "dgx-h100",
    out: PathLike | None = None,
    *,
    ranks: str | None = None,
    stop_after: int | str | None = None,
    steps: int | str | None = None,
    nodes: int | None = None,
    stacks: bool = False,
    set: Mapping[str, Any] | None = None,
    options: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    check: bool = True,
    quiet: bool = False,
    **environment: str,
) -> Run:
    """Runs a training command on an emulated cluster and predicts its step.

    The output of the command is shown as it is written, unless `quiet`. If the command fails, MayaError is raised,
    unless `check` is False; its work until then is recorded in both cases. Running out of GPU memory is a result and
    does not raise: see `run.prediction.out_of_memory`. `options` are further options of `maya run`.

    >>> run = maya.run(["python", "train.py"], cluster="a100-80gb-sxm", out="maya-runs/a100", quiet=True)
    >>> run.prediction.gpu
    'a100-80gb-sxm'
    >>> run.prediction.step.ms > 0
    True
    """
    folder = pathlib.Path(out) if out else _new_directory(command)
    words = [program(), "run", "--cluster", cluster, "--out", str(folder)]
    for name, value in (("--ranks", ranks), ("--stop-after", stop_after), ("--steps", steps), ("--nodes", nodes)):
        if value is not None:
            words += [name, str(value)]
    if stacks:
        words.append("--stacks")
    for key, value in (set or {}).items():
        words += ["--set", f"{key}={value}"]
    words += [*options, "--", *map(str, command)]
    code, tail = _perform(words, {**os.environ, **(env or {}), **environment}, quiet)
    if not folder.is_dir():
        raise MayaError(tail or f"maya run ended with code {code}")
    made = Run(folder, code)
    if code and check and not _ran_out(made):
        raise MayaError(tail or f"the command ended with code {code}")
    return made


def _absolute(cluster: str | None) -> str | None:
    """Makes the path of a cluster file absolute. Names of the catalogue are not changed."""
    return os.path.abspath(cluster) if cluster and os.path.isfile(cluster) else cluster


def predict(run: Run | PathLike, cluster: str | None = None, set: Mapping[str, Any] | None = None, *,
            steps: int | str | None = None, calibration: PathLike | None = None, details: bool = False,
            **settings: Any) -> Prediction:
    """Simulates a recording again, on another cluster or with other settings. No file is written.

    `set` are the settings of `maya predict --set`; settings without a dot can also be keyword arguments. The recording
    stays in memory, so the second prediction of a run only takes the time of its simulation. `details` adds the fields
    of prediction.json that the report uses, and takes longer: cost by source line, communicators, memory at the peak,
    and what-ifs.

    >>> maya.predict("maya-runs/demo", cluster="a100-80gb-sxm").gpu
    'a100-80gb-sxm'
    >>> faster = maya.predict("maya-runs/demo", set={"host.speed": 4})
    >>> faster.step.ms <= maya.predict("maya-runs/demo").step.ms
    True
    """
    # The engine is another process and may have another working directory.
    question: dict[str, Any] = {"run": os.path.abspath(run), "cluster": _absolute(cluster),
                                "set": {k: str(v) for k, v in {**(set or {}), **settings}.items()}}
    if details:
        question["details"] = True
    if steps is not None:
        question["steps"] = str(steps)
    if calibration is not None:
        question["calibration"] = os.path.abspath(calibration)
    return Prediction.from_json(engine.ask("predict", **question), os.fspath(run), question)


def compare(*runs: Run | PathLike | Prediction, **named: Run | PathLike | Prediction) -> Comparison:
    """Compares runs, prediction.json files or predictions. Keyword arguments give them names.

    >>> run = maya.open("maya-runs/demo")
    >>> table = maya.compare(h100=run, a100=run.predict("a100-80gb-sxm"))
    >>> [row["run"] for row in table.rows()]
    ['h100', 'a100']
    >>> table.rows()[1]["against_first"] > 1
    True
    """
    names, predictions = [], []
    for name, one in [(None, r) for r in runs] + list(named.items()):
        prediction = _prediction(one)
        names.append(name or _name(one, prediction))
        predictions.append(prediction)
    if len(predictions) < 2:
        raise MayaError("compare: name at least two runs")
    return Comparison(names, predictions)


def estimate(op: str, gpu: str = "h100-sxm", calibration: PathLike | None = None, **keys: Any) -> Estimate:
    """Predicts how long one op takes when it runs alone, like `maya estimate`.

    >>> one = maya.estimate("gemm", m=4096, n=4096, k=8192, dtype="bf16", gpu="h100-sxm")
    >>> one.low_us < one.us < one.high_us
    True
    >>> maya.estimate("gemm m=4096 n=4096 k=8192 dtype=bf16").us == one.us
    True
    """
    words = [*op.split(), *(f"{key}={value}" for key, value in keys.items())]
    answer = engine.ask("estimate", op=words, gpu=gpu, calibration=os.path.abspath(calibration) if calibration else "")
    return Estimate(
        answer["op"],
        answer["gpu"],
        answer["predicted_us"],
        answer["low_us"],
        answer["high_us"],
        answer["origin"],
        answer["tflops"],
        answer["gbps"],
        answer["peak_share"],
        answer["warning"],
    )


def net(
    cluster: str, collective: str, sizes: str = "1MB..1GB", ranks: int = 0, set: Mapping[str, Any] | None = None
) -> NetTable:
    """Predicts times and bandwidths of a collective, like `maya net`.

    >>> table = maya.net("dgx-h100:2", "all_reduce", "1MB..4MB")
    >>> [row.bytes for row in table]
    [1048576, 2097152, 4194304]
    >>> table.ranks
    16
    """
    answer = engine.ask("net", cluster=_absolute(cluster), collective=collective, sizes=sizes, ranks=ranks,
                        set={k: str(v) for k, v in (set or {}).items()})
    rows = [NetRow(us=row.pop("time_us"), **row) for row in answer["rows"]]
    return NetTable(answer["cluster"], answer["collective"], answer["ranks"], rows)


def clusters() -> list[dict]:
    """The clusters of the catalogue.

    >>> "dgx-h100" in [c["name"] for c in maya.clusters()]
    True
    """
    return json.loads(call(["clusters", "--json"]))


def gpus() -> list[dict]:
    """The GPUs of the catalogue.

    >>> "h100-sxm" in [g["name"] for g in maya.gpus()]
    True
    """
    return json.loads(call(["gpus", "--json"]))


def timeline(prediction: Prediction) -> Timeline:
    return Timeline.from_json(engine.ask("timeline", **_question(prediction)))


def page(prediction: Prediction) -> str:
    return engine.ask("page", **_question(prediction))


def _question(prediction: Prediction) -> dict:
    if not prediction.run:
        raise MayaError("this prediction was read from a file: only one of a run has a timeline")
    return prediction.question or {"run": os.path.abspath(prediction.run)}


def _prediction(one: Any) -> Prediction:
    if isinstance(one, Prediction):
        return one
    if isinstance(one, Run):
        return one.prediction
    path = pathlib.Path(one)
    if path.is_dir():
        return Run(path).prediction
    try:
        return Prediction.from_json(files.parse_json(files.read_text(path)))
    except (OSError, ValueError) as problem:
        raise MayaError(f"{path}: {problem}; expected a run directory or a prediction.json") from None


def _name(one: Any, prediction: Prediction) -> str:
    if isinstance(one, Prediction):
        what = ", ".join(f"{k}={v}" for k, v in one.settings.items())
        return f"{prediction.cluster}{' ' + what if what else ''}"
    return os.fspath(one)


def _ran_out(run: Run) -> bool:
    try:
        return run.prediction.out_of_memory is not None
    except MayaError:
        return False


def _new_directory(command: Sequence[str]) -> pathlib.Path:
    scripts = [pathlib.Path(w).stem for w in command if str(w).endswith((".py", ".sh"))]
    name = (
        re.sub(r"[^A-Za-z0-9_.-]", "-", scripts[0] if scripts else pathlib.Path(command[0]).stem) if command else "run"
    )
    base = pathlib.Path("maya-runs") / f"{time.strftime('%Y%m%d-%H%M%S')}-{name}"
    folder, again = base, 2
    while folder.exists():
        folder, again = base.with_name(f"{base.name}-{again}"), again + 1
    return folder


def _perform(words: list[str], environment: Mapping[str, str], quiet: bool) -> tuple[int, str]:
    """Returns the exit code and the last line that Maya wrote to stderr. Output goes to Python's sys.stdout and
    sys.stderr, so that a notebook shows it."""
    process = subprocess.Popen(
        words, env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    last = ""
    try:
        assert process.stdout
        for line in process.stdout:
            if line.startswith("maya: "):
                last = line[6:].strip()
            if not quiet:
                sys.stdout.write(line)
                sys.stdout.flush()
        return process.wait(), last
    except BaseException:
        process.terminate()
        process.wait()
        raise
