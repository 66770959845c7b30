"""maya search: the command line."""

from __future__ import annotations

import argparse
import os
import signal
import sys

from maya import MayaError
from maya.search import session, templates, view
from maya.search.enumeration import NoConfiguration
from maya.search.expression import ExpressionError
from maya.search.space import SpaceError
from maya.visible import visible_lines

EPILOG = """examples:
  maya search --init plain > space.toml      a commented space to begin with
  maya search space.toml                     search it; the command stands in it
  maya search space.toml --out DIR           … into DIR; the same line again goes on where it stopped
  maya search space.toml -- torchrun --nproc-per-node 8 train.py --batch {batch}
  maya search --show DIR                     what a search found so far

The directory holds search.html, results.csv, results.json and study.journal (`optuna-dashboard DIR/study.journal`).
docs/search.md describes the space, the methods and what is skipped.
Exit code: 0 found, 1 nothing fits or every trial fails, 2 wrong usage or space, 130 interrupted (finished trials are
kept)."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="maya search",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EPILOG,
        description="Search configurations of a training command for the best one",
    )
    made.add_argument("space", nargs="?", metavar="SPACE.toml", help="the space (docs/search.md)")
    made.add_argument("--init", metavar="KIND", choices=templates.KINDS,
                      help=f"print a commented space to begin with: {', '.join(templates.KINDS)}")
    made.add_argument("--show", metavar="DIR", help="print what a search found, finished or still running")
    made.add_argument("--list", action="store_true", help="print the valid configurations and run nothing")
    made.add_argument("--out", metavar="DIR", help="directory of the search (default: maya-searches/<time>-<name>)")
    made.add_argument("--method", choices=session.METHODS, default="auto",
                      help="how configurations are chosen (default: auto, by the size of the space)")
    made.add_argument("--trials", type=int, metavar="N", help="run at most N trials")
    made.add_argument("--minutes", type=float, metavar="M", help="start no trial after M minutes")
    made.add_argument("--jobs", type=int, metavar="N", help="trials at a time (default: as cores and memory allow)")
    made.add_argument("--engine", default="local", metavar="local|ray[://…]", help="where trials run (default: here)")
    made.add_argument("--cluster", help="the cluster, in place of the space's [cluster] name")
    made.add_argument("--no-prune", action="store_true", help="run every configuration, also those that cannot be best")
    made.add_argument("--seed", type=int, default=0, help="of the methods that draw at random")
    made.add_argument("--json", action="store_true", help="print the result as JSON (results.json)")
    made.add_argument("--csv", action="store_true", help="print the result as CSV (results.csv)")
    made.add_argument("--quiet", action="store_true", help="no progress")
    return made


def main(arguments: list[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = None
    if "--" in words:
        command = words[words.index("--") + 1:]
        words = words[:words.index("--")]
    options = parser().parse_args(words)
    try:
        return run(options, command)
    except (SpaceError, ExpressionError, NoConfiguration) as problem:
        return fail(str(problem), 2)
    except MayaError as problem:
        return fail(str(problem), 1)
    except KeyboardInterrupt:
        print("maya: interrupted; finished trials are kept, and the same command continues the search", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def fail(message: str, code: int) -> int:
    print(f"maya: {visible_lines(message)}", file=sys.stderr)
    return code


def run(options: argparse.Namespace, command: list[str] | None) -> int:
    if options.init:
        print(templates.text(options.init), end="")
        return 0
    if options.show:
        show(session.show(options.show), options)
        return 0
    if not options.space:
        return fail("search: name a space, or make one with `maya search --init plain > space.toml`", 2)
    for name in ("trials", "jobs", "minutes"):
        if getattr(options, name) is not None and getattr(options, name) <= 0:
            return fail(f"search: --{name} must be a positive number", 2)
    if options.list:
        return list_configurations(options, command)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends a search as Ctrl-C does
    settings = session.Settings(
        method=options.method, trials=options.trials, seconds=options.minutes * 60 if options.minutes else None,
        jobs=options.jobs, engine=options.engine, prune=not options.no_prune, seed=options.seed, out=options.out,
        command=command, cluster=options.cluster, view=view.make(quiet=options.quiet))
    result = session.perform(options.space, settings)
    show(result, options)
    if not (options.json or options.csv):
        print(f"  {result.folder}/search.html shows it; results.csv and results.json have every trial.")
    return 0 if result.best else 1


def show(result: object, options: argparse.Namespace) -> None:
    if options.json:
        print(result.to_json(), end="")  # type: ignore
        return
    # Values and error lines of somebody else's search may have escape sequences. In a file they do no harm.
    text = result.to_csv().replace("\r\n", "\n") if options.csv else result.summary()  # type: ignore
    print(text if options.csv and not sys.stdout.isatty() else visible_lines(text), end="")


def list_configurations(options: argparse.Namespace, command: list[str] | None) -> int:
    from maya.search import enumeration
    from maya.search.space import Space

    space = Space.load(options.space, command, options.cluster)
    enumeration.require_satisfiable(space)
    found, complete = enumeration.configurations(space, session.LARGEST_LIST)
    for values in found:
        print(space.label(values))
    print(f"maya: {'more than ' if not complete else ''}{len(found)} configurations", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
