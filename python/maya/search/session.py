"""One search from its space to its result: what `maya search` and `maya.search()` both do."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import time
from dataclasses import dataclass, field, replace
from typing import Any, Sequence

from maya import MayaError, files
from maya.search import campaign, compare, enumeration, outcome, processes, sampler
from maya.search import plan as plans
from maya.search import strategy as strategies
from maya.search import view as views
from maya.search.program import Program
from maya.search.prune import Pruner
from maya.search.result import SearchResult
from maya.search.space import Space, SpaceError
from maya.search.store import Store, check_version

LARGEST_LIST = 2_000_000  # configurations that are listed; a larger space is sampled
SMALL = 200  # up to this many configurations are all tried, unless --method is given
MOST_SPACE = 4 << 20  # bytes of the space.toml of a search that is shown
LAUNCHER = re.compile(r"python[\d.]*|torchrun|accelerate|deepspeed|bash|sh")
SERVING_CORES = 4  # of this machine for an engine with its client
METHODS = ("auto", "exhaustive", "guided", "gp", "tpe", "cmaes", "random", "grid")


@dataclass
class Settings:
    method: str = "auto"
    trials: int | None = None  # limit on trials that run
    seconds: float | None = None
    jobs: int | None = None
    engine: str = "local"
    prune: bool = True
    seed: int = 0
    out: str | None = None
    maya: str | None = None  # the program
    command: Sequence[str] | None = None
    cluster: str | None = None
    view: Any = None
    origin: dict[str, Any] = field(default_factory=dict)


def directory_of(space: Space, out: str | None) -> pathlib.Path:
    if out:
        return pathlib.Path(out)
    return pathlib.Path("maya-searches") / f"{time.strftime('%Y%m%d-%H%M%S')}-{space.name}"


def script_of(words: Sequence[str]) -> str | None:
    """The file that Python, a launcher or a shell is to run; of other programs nothing is known."""
    if not LAUNCHER.fullmatch(os.path.basename(words[0])):
        return None
    for word in words[1:]:
        if word == "-m":
            return None
        if word.endswith((".py", ".sh")) and " " not in word and not word.startswith("-"):
            return word
    return None


def check_trial(space: Space, program: Program, here: bool) -> None:
    """Reports problems that would fail every trial before the first one: a missing program or cluster and, if trials
    run on this machine (`here`), a missing script."""
    values = next(enumeration.Tree(space).walk())
    plan = plans.make(space, values)
    try:
        program.cluster(plan.cluster)
    except MayaError as problem:
        raise SpaceError(f"{space.where('cluster', 'name')}: [cluster] name: {problem}") from None
    word, directory = plan.words[0], pathlib.Path(space.path.parent if space.directory else ".", space.directory or "")
    if not (shutil.which(word) or (directory / word).exists()):
        raise SpaceError(f"{space.where('', 'command')}: the command's program {word!r} is not found; is its "
                         "environment active?")
    script = script_of(plan.words) if here else None
    if script and not (directory / script).exists():
        raise SpaceError(f"{space.where('', 'command')}: the command's script {script!r} is not in "
                         f"{directory.resolve()}, where trials run; change the command, or name another folder with "
                         "`directory`")


def make_engine(settings: Settings) -> Any:
    if settings.engine == "local":
        from maya.search.engine_local import LocalEngine

        return LocalEngine(settings.jobs)
    if settings.engine == "ray" or settings.engine.startswith("ray://"):
        from maya.search.engine_ray import RayEngine

        return RayEngine(settings.engine, settings.jobs)
    raise MayaError(f"unknown engine {settings.engine!r}; there are local, ray and ray://HOST:PORT")


def make_strategy(space: Space, settings: Settings, store: Store, pruner: Pruner) -> Any:
    listed, complete = enumeration.configurations(space, LARGEST_LIST) if space.finite else ([], False)
    method = settings.method
    if method == "auto":
        method = "tpe" if not complete else "exhaustive" if len(listed) <= SMALL or not settings.prune else "guided"
    if method in ("guided", "gp") and len(space.objective.goals) > 1:
        raise MayaError(f"--method {method} searches for one goal; use exhaustive or tpe for several")
    if method in ("exhaustive", "grid"):
        if not complete:
            raise MayaError(
                f"the space has {'real numbers without a step' if not space.finite else 'too many configurations'} "
                f"and cannot be searched exhaustively; use --method tpe, gp, cmaes or random"
            )
        return strategies.Listed(space, listed, store.records)
    if method in ("guided", "gp"):
        if not complete:
            raise MayaError(
                f"--method {method} lists the whole space, and this one cannot be listed; use tpe, cmaes or random"
            )
        from maya.search.guided import Guided

        return Guided(space, listed, store.records, pruner, settings.seed)
    if method in sampler.NAMES:
        return sampler.Sampled(space, store, method, settings.seed)
    raise MayaError(f"unknown method {settings.method!r}; there are {', '.join(METHODS)}")


def stored_command(command: Sequence[str]) -> list[str]:
    """What search.json holds of the command: the words with parameters in them. Others may be credentials, and nothing
    reads them again: a search is continued with its command."""
    return [word if "{" in word else "***" for word in command]


def perform(path: str | os.PathLike, settings: Settings) -> SearchResult:
    """Runs a search to its end; a KeyboardInterrupt leaves what is done in its directory."""
    path = pathlib.Path(path)
    space = Space.load(path, settings.command, settings.cluster)
    enumeration.require_satisfiable(space)
    if space.serving and settings.engine == "local" and settings.jobs is None:
        # Host times of an engine are read while it runs: another engine beside it would disturb them.
        settings = replace(settings, jobs=max(1, processes.cores() // SERVING_CORES))
    program = Program(settings.maya)
    check_trial(space, program, settings.engine == "local")
    strategies.baseline(space)
    folder = directory_of(space, settings.out)
    origin = {
        "space": str(path),
        "command": stored_command(settings.command or []),
        "cluster": settings.cluster,
        **settings.origin,
    }
    store = Store.open(folder, space, origin, numeric=settings.method == "cmaes")
    try:
        pruner = Pruner(space, program, settings.prune)
        chosen = make_strategy(space, settings, store, pruner)
        view = settings.view or views.Silent()
        runner = campaign.Campaign(space, store, make_engine(settings), program, chosen, pruner,
                                   campaign.Budget(settings.trials, settings.seconds),
                                   os.path.abspath(path.parent / space.directory if space.directory else "."), view)
        finished, notes = False, []
        try:
            runner.run()
            finished = True
        finally:
            notes = notes_of(space, store, pruner)
            result = SearchResult(space, folder, store.records, notes, finished)
            if store.records:
                result.write()
        result.progress = runner.progress
        return result
    finally:
        store.close()


def notes_of(space: Space, store: Store, pruner: Pruner) -> list[str]:
    notes = []
    if space.serving:
        return notes + _distrusted(pruner)
    ran = [r for r in store.records if r.ok and not r.reused]
    if len(ran) > 2 and all(compare.same_work(ran[0].prediction, r.prediction) for r in ran[1:]):
        notes.append("all trials are equal in what the GPUs do: the script seems to ignore what it is given. Where "
                     "step times differ, the host's do, from one recording to the next.")
    else:
        for name in campaign.duplicates(space, ran):
            notes.append(f"{name} changes nothing that the GPUs do in any pair of trials: does the script read it?")
    lines = [(r, f) for r in store.records if r.checks.get("extrapolated") and r.step_ms
             for f in store.records if f.key == r.key and f.step_ms and not f.checks.get("extrapolated")]
    if lines:
        worst = max(abs(r.step_ms / f.step_ms - 1) for r, f in lines)
        notes.append(
            f"Steps are extrapolated from shorter ones ([fidelity]); of {len(lines)} that also ran at full depth the "
            "line "
            f"was at most {100 * worst:.1f} % off."
        )
    failed = [f for f in store.records if f.kind in outcome.FAILURES and not f.checks and any(
        r.key == f.key and r.checks.get("extrapolated") and r.ok for r in store.records)]
    for record in failed:
        notes.append(
            f"{space.label(record.values)} is extrapolated only: at full depth it ended with {record.kind}: "
            f"{record.detail}"
        )
    return notes + _distrusted(pruner)


def _distrusted(pruner: Pruner) -> list[str]:
    return [f"[prune] declares how memory depends on {name}, but {why}; it was no longer used to skip configurations."
            for name, why in pruner.distrusted.items()]


def show(folder: str | os.PathLike) -> SearchResult:
    """The result of a search in its directory, finished or still running."""
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise MayaError(f"{folder} is not a directory")
    origin = check_version(folder)
    try:
        text = files.read_text(folder / "space.toml", MOST_SPACE)
        space = Space.parse(text.encode(), folder / "space.toml", origin.get("command") or None, origin.get("cluster"),
                            templates=False)
    except OSError:
        raise MayaError(f"{folder} is not the directory of a search: it has no space.toml") from None
    store = Store.read(folder, space)
    pruner = Pruner(space)
    for record in store.records:
        pruner.learn(record)
    return SearchResult(space, folder, store.records, notes_of(space, store, pruner))
