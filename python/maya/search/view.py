"""The search in a terminal: a few lines that are redrawn while it runs, or one line per trial where they go to a
file."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import Any, TextIO

from maya.search import outcome
from maya.search.columns import goal_text, line, memory_text
from maya.search.ranking import ranked
from maya.search.space import Space
from maya.search.store import Record
from maya.visible import visible

REDRAW_S = 0.25
SKIPPED_LINES_S = 5.0  # without a terminal, skipped configurations are counted and not listed


def duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def record_line(space: Space, record: Record) -> str:
    """One trial in a line: what it was, what came out."""
    label = space.label(record.values)
    if record.kind == outcome.OK:
        return f"{label}: {line(space, record)}"
    return f"{label}: {record.kind}{': ' + record.detail if record.detail else ''}"


class Silent:
    """Shows nothing: for scripts and tests."""

    def begin(self, campaign: Any) -> None: ...
    def tell(self, campaign: Any, record: Record) -> None: ...
    def update(self, campaign: Any) -> None: ...
    def end(self, campaign: Any) -> None: ...


class Lines(Silent):
    """One line per trial."""

    def __init__(self, out: TextIO):
        self.out, self.skipped, self.said = out, 0, time.monotonic()

    def say(self, text: str) -> None:
        print(visible(text), file=self.out, flush=True)

    def tell(self, campaign: Any, record: Record) -> None:
        if record.kind == outcome.SKIPPED:
            self.skipped += 1
            return
        done = sum(campaign.progress.kinds.values())
        # Confirmations at full depth are counted in addition to the configurations.
        of = f"/{campaign.progress.total}" if done <= (campaign.progress.total or 0) else ""
        self.say(f"[{done}{of}] {record_line(campaign.space, record)}")

    def update(self, campaign: Any) -> None:
        if self.skipped and time.monotonic() - self.said > SKIPPED_LINES_S:
            self.end(campaign)

    def end(self, campaign: Any) -> None:
        if self.skipped:
            self.say(f"{self.skipped} skipped with reasons")
        self.skipped, self.said = 0, time.monotonic()


class Live(Silent):
    """A block of lines that is redrawn in place."""

    def __init__(self, out: TextIO):
        self.out, self.lines, self.drawn = out, 0, 0.0
        self.recent: list[Record] = []
        self.colour = "NO_COLOR" not in os.environ

    def tell(self, campaign: Any, record: Record) -> None:
        if record.kind != outcome.SKIPPED:
            self.recent = [*self.recent, record][-4:]

    def update(self, campaign: Any) -> None:
        if time.monotonic() - self.drawn >= REDRAW_S:
            self.draw(campaign)

    def end(self, campaign: Any) -> None:
        self.draw(campaign)
        self.out.write("\n")

    def draw(self, campaign: Any) -> None:
        self.drawn = time.monotonic()
        width = shutil.get_terminal_size().columns
        block = progress_lines(campaign, width) + [f"    {record_line(campaign.space, r)}" for r in self.recent]
        block = [visible(line)[:width - 1] for line in block]
        up = f"\x1b[{self.lines}F" if self.lines else ""
        self.out.write(up + "".join(f"\x1b[2K{line}\n" for line in block) + "\x1b[0J")
        self.out.flush()
        self.lines = len(block)


def progress_lines(campaign: Any, width: int = 100) -> list[str]:
    progress, space = campaign.progress, campaign.space
    done, elapsed = sum(progress.kinds.values()), time.monotonic() - progress.began
    lines = []
    if progress.total:
        filled = int(30 * min(1.0, done / progress.total))
        lines.append(f"  {'█' * filled}{'·' * (30 - filled)}  {done} of {progress.total}, {progress.running} running, "
                     f"{duration(elapsed)}{_left(progress, elapsed, done)}{progress.note}")
    else:
        lines.append(f"  {done} tried, {progress.running} running, {duration(elapsed)}{progress.note}")
    kinds = [f"{progress.kinds[kind]} {kind}" for kind in outcome.KINDS if progress.kinds[kind]]
    lines.append(f"  {' · '.join(kinds) or 'nothing yet'}")
    best = ranked(space, campaign.store.records)[:1]
    if best:
        goal = space.objective.goals[0]
        memory = "" if space.serving else f", {memory_text(best[0])}"
        lines.append(f"  best so far: {space.label(best[0].values)}: {goal_text(goal, best[0].goals[0])}{memory}")
    return lines


def _left(progress: Any, elapsed: float, done: int) -> str:
    if done < 3 or not progress.total or done >= progress.total:
        return ""
    return f", about {duration(elapsed / done * (progress.total - done))} left"


def make(out: TextIO | None = None, quiet: bool = False) -> Any:
    out = out or sys.stderr
    if quiet:
        return Silent()
    return Live(out) if out.isatty() and os.environ.get("TERM") != "dumb" else Lines(out)
