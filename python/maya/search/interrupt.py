"""Ctrl-C, and a request to end, while a search runs."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupt:
    """Remembers a signal that would raise KeyboardInterrupt, in addition to raising it.

    Python discards exceptions inside the functions that it calls around a fork (those of `os.register_at_fork`). A
    signal that arrives while a trial is started is handled there, so its KeyboardInterrupt may be lost. `check` raises
    it again at a place where it counts.
    """

    def __init__(self) -> None:
        self.asked = False
        self._replaced: list[int] = []

    def __enter__(self) -> "Interrupt":
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) is signal.default_int_handler:
                    signal.signal(number, self._ask)
                    self._replaced.append(number)
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        for number in self._replaced:
            signal.signal(number, signal.default_int_handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        raise KeyboardInterrupt

    def check(self) -> None:
        if self.asked:
            raise KeyboardInterrupt
