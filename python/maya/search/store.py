"""The directory of a search: its space, and every configuration that was tried or skipped.

    DIR/search.json     version and origin of the search
    DIR/space.toml      the space as it was last searched
    DIR/study.journal   Optuna's journal: `optuna-dashboard DIR/study.journal` opens it
    DIR/trials/KEY/     one trial: output.txt, files/, run/ (a run directory of `maya run`)
    DIR/results.csv, results.json, search.html

One search writes to a directory at a time (search.lock). A search that is started again on its directory goes on where
it was. One whose space has changed gets a new study in the same journal and takes over every trial whose command is the
same.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import pathlib
import stat
import time
import warnings
from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping

from maya import MayaError, files
from maya.search import domain, outcome
from maya.search.space import Space
from maya.visible import visible

VERSION = 1


class StoreError(MayaError):
    """The directory of a search cannot be used. The message says why and what to do."""


@dataclass
class Record:
    """One configuration of the search and what became of it."""

    number: int
    values: dict[str, Any]  # of the parameters
    kind: str
    detail: str = ""
    key: str = ""  # of the plan: equal commands have equal keys
    goals: list[float] = field(default_factory=list)
    prediction: dict[str, Any] = field(default_factory=dict)  # outcome.summary
    seconds: float = 0.0
    reused: str = ""
    folder: str = ""
    baseline: bool = False
    checks: dict[str, Any] = field(default_factory=dict)  # how an extrapolation was made

    @property
    def ok(self) -> bool:
        return self.kind == outcome.OK

    @property
    def step_ms(self) -> float | None:
        step = self.prediction.get("step")
        return step["ms"] if step else None

    def to_dict(self) -> dict[str, Any]:
        return {"number": self.number, "values": self.values, "kind": self.kind, "detail": self.detail, "key": self.key,
                "goals": self.goals, "prediction": self.prediction, "seconds": self.seconds, "reused": self.reused,
                "folder": self.folder, "baseline": self.baseline, "checks": self.checks}


@functools.lru_cache(maxsize=1)
def optuna() -> Any:
    """Imports Optuna without its log output. Raises StoreError with instructions if it is not installed."""
    try:
        import optuna as package
    except ModuleNotFoundError as problem:
        raise StoreError(f"maya search needs Optuna ({problem.name} is missing): pip install 'maya[search]'") from None
    package.logging.set_verbosity(package.logging.ERROR)
    return package


def distribution(parameter: domain.Parameter, numeric: bool = False) -> Any:
    """Optuna's view of a parameter. `numeric`: choices of numbers as a range (for CMA-ES, which knows no
    categories)."""
    distributions = optuna().distributions
    where = parameter.domain
    if isinstance(where, domain.Floats):
        return distributions.FloatDistribution(where.low, where.high, log=where.log)
    if isinstance(where, domain.Divisors):
        return distributions.IntDistribution(where.least, min(where.most, 2**31), log=where.least >= 1)
    options = list(where.options)
    extra = [parameter.otherwise] if parameter.otherwise is not None and parameter.otherwise not in options else []
    numbers = all(isinstance(o, int) and not isinstance(o, bool) for o in options + extra)
    if numbers and (numeric or parameter.kind in ("integers", "powers_of_two")):
        low, high = min(options + extra), max(options + extra)
        return distributions.IntDistribution(low, high, log=low >= 1 and high > low)
    return distributions.CategoricalDistribution(options + extra)


def _open(path: pathlib.Path, flags: int) -> int:
    """Opens a file of the search for writing. A link or a device in its place, as in a directory that somebody else
    made, is an error: what it leads to is not ours."""
    try:
        file = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as problem:
        what = "it is a symbolic link" if path.is_symlink() else problem.strerror
        raise StoreError(f"cannot write {path}: {what}; name another directory with --out") from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise StoreError(f"cannot write {path}: it is not a regular file; name another directory with --out")
    return file


class _Lock:
    def __init__(self, folder: pathlib.Path):
        self.file = open(_open(folder / "search.lock", os.O_RDWR | os.O_CREAT | os.O_APPEND), "a+")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.file.seek(0)
            holder = visible(self.file.read(20).strip())
            self.file.close()
            raise StoreError(
                f"another search {f'(process {holder}) ' if holder else ''}is writing to {folder}; wait for it, "
                "or name another directory with --out"
            ) from None
        self.file.truncate(0)
        self.file.write(str(os.getpid()))
        self.file.flush()

    def release(self) -> None:
        self.file.close()


def _mend(journal: pathlib.Path) -> None:
    """Cuts off a last line that was not written to its end (a kill, a full disk)."""
    if not journal.exists() and not journal.is_symlink():
        return
    with open(_open(journal, os.O_RDWR), "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        back = min(size, 1 << 24)
        file.seek(size - back)
        tail = file.read(back)
        if tail and not tail.endswith(b"\n"):
            file.truncate(size - back + tail.rfind(b"\n") + 1)


def _backend(journal: pathlib.Path) -> Any:
    optuna()
    from optuna.storages.journal import JournalFileBackend

    class Backend(JournalFileBackend):
        """Optuna's file, for one writer: it is locked by the search, and written to the disk about once a second."""

        synced = 0.0

        def append_logs(self, logs: list[dict[str, Any]]) -> None:
            lines = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs).encode()
            with open(_open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab", buffering=0) as file:
                before = file.seek(0, os.SEEK_END)
                try:
                    if file.write(lines) != len(lines):
                        raise OSError(28, "No space left on device")
                    if time.monotonic() - self.synced > 1:
                        os.fsync(file.fileno())
                        self.synced = time.monotonic()
                except OSError as problem:
                    file.truncate(before)
                    raise StoreError(
                        f"cannot write to {journal}: {problem.strerror}; what was done is kept. Make room and "
                        "start the same search again"
                    ) from None

    return Backend(str(journal))


class Store:
    def __init__(self, folder: pathlib.Path, space: Space, study: Any, lock: _Lock | None):
        self.folder, self.space, self.study, self._lock = folder, space, study, lock
        self.known: dict[str, Record] = {}  # by key: trials whose outcome can be reused
        self.records: list[Record] = []
        self._next = 0  # number of the next trial; only this search adds trials
        self._distributions = {name: distribution(p) for name, p in space.parameters.items()}

    @staticmethod
    def open(folder: pathlib.Path, space: Space, origin: Mapping[str, Any], numeric: bool = False) -> "Store":
        """Creates a new directory, or opens one to continue a search."""
        try:
            if not folder.exists():
                folder.mkdir(parents=True, mode=0o700)  # command lines and outputs of trials are private
            (folder / "trials").mkdir(mode=0o700, exist_ok=True)
        except OSError as problem:
            raise StoreError(f"cannot make {folder}: {problem.strerror}") from None
        if (folder / "trials").is_symlink():
            raise StoreError(f"{folder / 'trials'} is a symbolic link; name another directory with --out")
        if any(folder.iterdir()) and not (folder / "search.json").exists() and [
                p for p in folder.iterdir() if p.name not in ("trials", "search.lock")]:
            raise StoreError(f"{folder} is not the directory of a search; name a new one with --out")
        lock = _Lock(folder)
        try:
            check_version(folder)
            _mend(folder / "study.journal")
            _write(folder / "search.json", json.dumps({"version": VERSION, **origin}, indent=2) + "\n")
            _write(folder / "space.toml", space.text)
            os.close(_open(folder / "study.journal", os.O_WRONLY | os.O_CREAT))  # Optuna's own would be readable by all
            storage = optuna().storages.JournalStorage(_backend(folder / "study.journal"))
            store = Store(folder, space, None, lock)
            store._open_study(storage, numeric)
            return store
        except BaseException:
            lock.release()
            raise

    @staticmethod
    def read(folder: pathlib.Path, space: Space) -> "Store":
        """The last study of a directory, for looking at it; a running search is not disturbed."""
        check_version(folder)
        journal = folder / "study.journal"
        if not journal.exists():
            raise StoreError(f"{folder} is not the directory of a search: it has no study.journal")
        if not journal.is_file():
            raise StoreError(f"{journal} is not a regular file")
        package = optuna()
        try:
            storage = package.storages.JournalStorage(package.storages.journal.JournalFileBackend(str(journal)))
            studies = storage.get_all_studies()
            if not studies:
                raise StoreError(f"{folder} has no study yet")
            store = Store(folder, space, package.load_study(study_name=studies[-1].study_name, storage=storage), None)
            store._load()
            return store
        except MayaError:
            raise
        except Exception as problem:  # Optuna reads lines of any content; what it raises then is not documented
            raise StoreError(f"{journal} is damaged ({type(problem).__name__}: {str(problem)[:200]})") from None

    def _open_study(self, storage: Any, numeric: bool) -> None:
        package = optuna()
        from maya.search.objective import GOALS

        print_of_space = _print_of(self.space)
        self._distributions = {name: distribution(p, numeric) for name, p in self.space.parameters.items()}
        studies = storage.get_all_studies()
        for summary in studies:
            study = package.load_study(study_name=summary.study_name, storage=storage)
            for record in _records(study):
                self._remember(record)
        print_of_space += "numeric" if numeric else ""
        if studies and storage.get_study_user_attrs(studies[-1]._study_id).get("space") == print_of_space:
            self.study = package.load_study(study_name=studies[-1].study_name, storage=storage)
        else:
            name = self.space.name if not studies else f"{self.space.name}-{len(studies) + 1}"
            directions = ["maximize" if GOALS[g].maximize else "minimize" for g in self.space.objective.goals]
            self.study = package.create_study(study_name=name, storage=storage, directions=directions)
            self.study.set_user_attr("space", print_of_space)
            with _without_warnings():
                self.study.set_metric_names([f"{GOALS[g].title} ({GOALS[g].unit})" for g in self.space.objective.goals])
        for trial in self.study.get_trials(deepcopy=False, states=(package.trial.TrialState.RUNNING,)):
            self.study.tell(trial.number, state=package.trial.TrialState.FAIL)  # of a search that was interrupted
        self._load()

    def _load(self) -> None:
        self.records = _records(self.study)
        self._next = len(self.study.get_trials(deepcopy=False))

    def add(self, record: Record, asked: Any = None) -> Record:
        """Stores the outcome of a configuration. `asked` is the Optuna trial, if a sampler proposed it."""
        package = optuna()
        state = _state(record.kind, len(self.space.objective.goals))
        if asked is not None:
            record.number = asked.number
            for name, value in _attributes(record).items():
                asked.set_user_attr(name, value)
            self.study.tell(asked, values=record.goals if record.ok else None, state=state)
        else:
            record.number = self._next
            used = {n: v for n, v in record.values.items() if v is not None and _contains(self._distributions[n], v)}
            self.study.add_trial(package.trial.create_trial(
                state=state, values=record.goals if record.ok else None, params=used,
                distributions={n: self._distributions[n] for n in used}, user_attrs=_attributes(record)))
        self._next = max(self._next, record.number + 1)
        self.records.append(record)
        self._remember(record)
        return record

    def _remember(self, record: Record) -> None:
        if record.key and record.kind != outcome.SKIPPED:
            self.known[record.key] = record

    def trial_folder(self, key: str) -> pathlib.Path:
        return self.folder / "trials" / key

    def close(self) -> None:
        if self._lock:
            self._lock.release()
            self._lock = None


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    """Optuna marks much of what it has as experimental; the versions are pinned."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _contains(where: Any, value: Any) -> bool:
    with contextlib.suppress(Exception):
        return where._contains(where.to_internal_repr(value))
    return False


def check_version(folder: pathlib.Path) -> dict[str, Any]:
    path = folder / "search.json"
    if not path.exists():
        return {}
    try:
        origin = files.parse_json(files.read_text(path))
        version = int(origin["version"])
    except (OSError, ValueError, KeyError, TypeError):
        raise StoreError(
            f"{path} is damaged; the trials are kept in {folder / 'study.journal'}. Remove {path} to continue"
        ) from None
    if version > VERSION:
        raise StoreError(f"{folder} was written by a newer Maya (search version {version}, this one reads {VERSION}); "
                         "use that one, or name another directory with --out")
    return origin


def _state(kind: str, goals: int) -> Any:
    states = optuna().trial.TrialState
    if kind == outcome.OK:
        return states.COMPLETE
    # Samplers learn from pruned trials too. Optuna supports this for a single goal only.
    return (
        states.PRUNED
        if goals == 1 and kind in (outcome.MAY_FIT, outcome.OUT_OF_MEMORY, outcome.OVER_LIMIT, outcome.SKIPPED)
        else states.FAIL
    )


def _attributes(record: Record) -> dict[str, Any]:
    shown: dict[str, Any] = {"kind": record.kind, "detail": record.detail}
    if record.step_ms is not None:
        shown["step_ms"] = record.step_ms
    return {**shown, "record": record.to_dict()}


def _records(study: Any) -> list[Record]:
    found = []
    for trial in study.get_trials(deepcopy=False):
        stored = trial.user_attrs.get("record")
        if not stored:
            continue  # interrupted: it will run again
        record = Record(**{key: stored[key] for key in Record.__dataclass_fields__ if key in stored})
        record.number = trial.number
        _check(record)
        found.append(record)
    return found


def _check(record: Record) -> None:
    """The journal may be somebody else's: every field has its type, and the folder is one below trials/."""
    wrong = [name for name, kinds in _TYPES.items() if not isinstance(getattr(record, name), kinds)]
    if wrong or record.kind not in outcome.KINDS or not all(isinstance(goal, (int, float)) for goal in record.goals):
        raise StoreError(f"trial {record.number} in study.journal is damaged ({', '.join(wrong) or 'kind or goals'})")
    if "/" in record.folder or record.folder in (".", ".."):
        record.folder = ""


_TYPES: dict[str, Any] = {"values": dict, "kind": str, "detail": str, "key": str, "goals": list, "prediction": dict,
                          "seconds": (int, float), "reused": str, "folder": str, "checks": dict}


def _print_of(space: Space) -> str:
    parts = [space.text, [t.text for t in space.command], space.cluster_name.text,
             {name: file.template.text for name, file in space.files.items()}]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:20]


def _write(path: pathlib.Path, text: str) -> None:
    """All of it or nothing: a full disk leaves the old file."""
    try:
        files.write_text(path, text)
    except OSError as problem:
        raise StoreError(f"cannot write {path}: {problem.strerror}") from None

