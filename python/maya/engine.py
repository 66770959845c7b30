"""The `maya engine` process behind the Python functions. It keeps recordings and models in memory between questions.

It is a process and not an extension module: the package works with every Python release without being built for it, a
crash of the simulator does not crash a notebook, and a question costs only 0.1 ms of JSON in addition to the
simulation.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import threading
from typing import Any

from maya.installation import MayaError, program


class Engine:
    """One `maya engine` process, started with the first question. Thread-safe; a forked child starts its own
    process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._owner = 0
        self._next = 0

    def ask(self, ask: str, **question: Any) -> Any:
        """The answer to one question. Raises MayaError if there is none."""
        with self._lock:
            process = self._running()
            self._next += 1
            line = json.dumps({"id": self._next, "ask": ask, **question})
            try:
                assert process.stdin and process.stdout
                process.stdin.write(line + "\n")
                process.stdin.flush()
                text = process.stdout.readline()
            except (BrokenPipeError, ValueError):
                text = ""
            except BaseException:  # Ctrl-C between question and answer: the next one must not read this answer
                self._stop()
                raise
            if not text:
                code = process.wait()
                self._stop()
                raise MayaError(f"maya engine ended with code {code} while it answered `{ask}`; please report it")
        reply = json.loads(text)
        if "error" in reply:
            raise MayaError(reply["error"])
        return reply["answer"]

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._owner != os.getpid() or self._process.poll() is not None:
            self._process = subprocess.Popen([program(), "engine"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                             text=True, encoding="utf-8")
            self._owner = os.getpid()
        return self._process

    def close(self) -> None:
        """Ends the process. The next question starts a new one."""
        with self._lock:
            self._stop()

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        for pipe in (process.stdin, process.stdout):
            try:
                if pipe:
                    pipe.close()
            except OSError:
                pass
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


engine = Engine()
atexit.register(engine.close)
