"""How a trial ended. A failure is a result: its kind and its first error line are kept."""

from __future__ import annotations

import hashlib
import pathlib
import re
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Mapping

from maya import files
from maya.search import serving
from maya.search.objective import peak_memory

OK = "ok"
MAY_FIT = "may fit"
OUT_OF_MEMORY = "out of memory"
CRASH = "crash"
TIMEOUT = "time limit"
USAGE = "wrong argument"
NO_STEP = "no step"
OVER_LIMIT = "over a limit"
SKIPPED = "skipped"
KINDS = (OK, MAY_FIT, OUT_OF_MEMORY, OVER_LIMIT, CRASH, USAGE, TIMEOUT, NO_STEP, SKIPPED)
FAILURES = (CRASH, USAGE, TIMEOUT, NO_STEP)

# Predicted memory is known to this share of the GPU's. What PyTorch's allocator holds follows from the recording; what
# lies outside of it is estimated: the CUDA context (0.4 to 0.55 GiB in the catalogue, each marked as an estimate),
# loaded modules and NCCL's buffers. 1 % of a GPU of 80 GiB is that context and half as much again.
MEMORY_ERROR = 0.01

# What engines say when the weights leave too little memory for their cache.
_NO_ROOM = re.compile(
    r"no available memory for the cache blocks|not enough memory\b.*(?:cache|mem.fraction)"
    r"|larger than the (?:maximum number of tokens that can be stored in KV cache|available KV cache memory)"
    r"|larger than the available KV cache|free memory on device .* is less than desired",
    re.I,
)

MAX_READ = 4 << 20  # of a trial's output

_PYTHON_ERROR = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Fault)\b.*")
_LINE_MARK = re.compile(r"^\s*(?:\[[^\]]*rank\s*\d+[^\]]*\]:?|\[\d+\]:)\s*", re.I)
_BOX = re.compile(r"^[\s\u2500-\u257f]+|[\s\u2500-\u257f]+$")  # frames that rich, click and tyro draw around messages
_ARGUMENT = re.compile(
    r"(?:error: (?:unrecognized arguments|argument |the following arguments|ambiguous option|invalid)"
    r"|No such option|unrecognized (?:option|argument)|Unknown (?:flag|option|argument))",
    re.I,
)
# Messages of launchers about a failed worker. They are skipped: the error of the worker itself is shown.
_LAUNCHER = re.compile(r"ChildFailedError|SignalException|torch\.distributed\.elastic|CalledProcessError")


@dataclass
class Outcome:
    kind: str
    detail: str = ""  # the first error line, or how much memory is missing
    prediction: dict[str, Any] | None = None
    seconds: float = 0.0  # this machine's time for the trial
    folder: str = ""  # of the trial, below the search's directory
    reused: str = ""  # "simulated again" or "same command": no process ran
    memory_gib: float = 0.0  # this machine's memory at the trial's peak
    checks: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def first_error(text: str) -> str:
    """The line a person would look for in the output of a failed job."""
    lines = [_BOX.sub("", _LINE_MARK.sub("", line)) for line in text.splitlines()]
    lines = [line for line in lines if line]
    for line in lines:
        if _ARGUMENT.search(line):
            return line[:500]
    errors = [line for line in lines if _PYTHON_ERROR.match(line)]
    own = [line for line in errors if not _LAUNCHER.search(line)]
    if own:
        return own[0][:500]
    # The last line of Maya. Its earlier lines report what it starts; a warning that it repeats ended nothing.
    said = [line for line in lines if line.startswith("maya: ") and "recording to" not in line
            and "the command ended with code" not in line and "Warning: " not in line]
    if said:
        return said[-1].removeprefix("maya: ")[:500]
    if errors:
        return errors[0][:500]
    for line in lines:
        if re.search(r"\berror\b|\bfatal\b|not found|No such file", line, re.I):
            return line[:500]
    return lines[-1][:500] if lines else "it printed nothing"


def read_prediction(run: pathlib.Path) -> dict[str, Any] | None:
    try:
        prediction = files.parse_json(files.read_text(run / "prediction.json"))
    except (OSError, ValueError):
        return None
    return prediction if isinstance(prediction, dict) else None


def _size(count: float) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def judge(code: int, output: str, prediction: Mapping[str, Any] | None) -> tuple[str, str]:
    """Kind and detail of a trial that ended by itself."""
    memory = (prediction or {}).get("out_of_memory")
    if memory:
        short = memory["in_use_bytes"] + memory["requested_bytes"] - memory["capacity_bytes"]
        by = f"at least {_size(short)} short of" if short >= 2**20 else "does not fit into"
        return OUT_OF_MEMORY, f"{by} {_size(memory['capacity_bytes'])} on rank {memory['rank']}"
    if code == 0 and prediction:
        if prediction.get("step"):
            return OK, ""
        return NO_STEP, prediction.get("no_step") or "the run ended before a training step was complete"
    line = first_error(output)
    if room := _NO_ROOM.search(output):
        said = output[output.rfind("\n", 0, room.start()) + 1:].split("\n", 1)[0]
        return OUT_OF_MEMORY, f"the engine says: {said.strip()[:400]}"
    if _ARGUMENT.search(line):
        return USAGE, line
    if code < 0:
        return CRASH, f"killed by signal {-code}: {line}"
    return CRASH, line


def judge_served(code: int, output: str, prediction: Mapping[str, Any] | None) -> tuple[str, str]:
    """Kind and detail of an engine's trial. What it computes is no step; an answered load counts."""
    if prediction and prediction.get("serving"):
        problem = serving.failure(prediction)
        return (CRASH, problem) if problem else (OK, "")
    return judge(code or 1, output, prediction)


def goes_beyond(result: Outcome) -> bool:
    """Whether the run, which may use a little more memory than the GPU has, came to its end by that."""
    prediction = result.prediction or {}
    memory = prediction.get("out_of_memory") if result.kind == OUT_OF_MEMORY else None
    return bool(memory and prediction.get("step") and not memory.get("during_run", True))


def over(peak: float, capacity: float) -> str:
    return (f"{(peak - capacity) / 2**20:,.0f} MiB over {_size(capacity)}, less than the error of predicted memory "
            f"({100 * MEMORY_ERROR:g} %)")


def settled(beyond: Outcome, strict: Outcome) -> Outcome:
    """One outcome of a run that went a little beyond the GPU's memory and of the same run with that as its limit: there
    PyTorch releases what it keeps for later, and may come by with what there is."""
    seconds = round(beyond.seconds + strict.seconds, 3)
    if strict.kind == OK:
        return replace(strict, seconds=seconds)
    kept = {key: value for key, value in (beyond.prediction or {}).items() if key != "out_of_memory"}
    return replace(beyond, kind=MAY_FIT, detail=over(*peak_memory(kept)), seconds=seconds, prediction=kept)


def summary(prediction: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a prediction in the store: enough for every view, without the lists of ops and ranks."""
    peak, capacity = peak_memory(prediction)
    kept = {key: prediction.get(key) for key in (
        "cluster", "gpu", "gpus", "world_size", "step", "breakdown_ms", "flops_per_step", "mfu", "throughput",
        "out_of_memory", "cost", "families", "common_error", "stages")}
    if prediction.get("serving"):
        kept["serving"] = serving.kept(prediction["serving"])
    kept["memory"] = [{"rank": 0, "peak_bytes": peak, "capacity_bytes": capacity}] if capacity else []
    for entry in prediction.get("memory") or []:
        if entry.get("allocator_retries"):
            kept["memory"][0]["allocator_retries"] = max(entry["allocator_retries"],
                                                         kept["memory"][0].get("allocator_retries", 0))
    kept["op_ms"] = [[op.get("kind"), hashlib.sha1(f"{op.get('name')} {op.get('sizes')}".encode()).hexdigest()[:8],
                      round(op.get("ms", 0.0), 6)] for op in (prediction.get("ops") or [])]
    kept["largest_costs"] = (prediction.get("largest_costs") or [])[:5]
    coverage = prediction.get("coverage") or {}
    kept["unknown"] = coverage.get("unknown", 0)
    kept["notes"] = [note[:200] for note in (prediction.get("notes") or [])[:8]]
    return {key: value for key, value in kept.items() if value is not None}
