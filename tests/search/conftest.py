"""What tests of the search need: the package of the tree, a program that answers from a formula, small spaces."""

from __future__ import annotations

import json
import os
import pathlib
import sys
import types

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "python"), str(HERE)]
FAKE = HERE / "fake_maya.py"

# 400 layouts of which a formula predicts the step and the memory.
LAYOUTS = """
command = ["python3", "train.py", "--world", "{world}", "--batch", "{batch}"]
constraints = ["batch % (dp * micro) == 0", "layers % (pp * (vpp if pp > 1 else 1)) == 0"]
[constants]
world = 64
batch = 512
layers = 32
[parameters]
tp = { powers_of_two = [1, 8] }
pp = { powers_of_two = [1, 8] }
micro = { divisors_of = "batch / dp", max = 4 }
vpp = { choice = [1, 2], when = "pp > 1" }
recompute = ["none", "selective", "full"]
sp = { boolean = true, when = "tp > 1", otherwise = false }
[derived]
dp = "world / (tp * pp)"
accumulation = "batch / (dp * micro)"
[flags]
"--tp" = "tp"
"--pp" = "pp"
"--micro" = "micro"
"--vpp" = "vpp"
"--recompute" = "recompute"
"--sp" = "sp"
[cluster]
name = "dgx-a100"
nodes = "world / 8"
[prune]
memory_increases_with = ["micro"]
trades_time_for_memory = ["recompute"]
flops = "6 * (12 * layers * 4096 ** 2 + 2 * 51200 * 4096) * batch * 2048"
bubble = "(pp - 1) / (accumulation * (vpp if pp > 1 else 1))"
"""


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """The path of the program that stands in for maya; the script of the commands is there, and never read."""
    monkeypatch.setenv("MAYA_PROGRAM", str(FAKE))
    (tmp_path / "train.py").touch()
    return FAKE


class FormulaEngine:
    """An engine that answers from the formula in this process: thousands of trials in seconds."""

    name = "formula"

    def __init__(self, jobs=2):
        self.jobs, self.waiting, self.count = jobs, [], 0

    @property
    def busy(self):
        return len(self.waiting)

    def has_room(self, memory_gib):
        return self.busy < self.jobs

    def submit(self, task):
        self.count += 1
        self.waiting.append(task)

    def wait(self, timeout):
        import fake_maya
        from maya.search import outcome

        if not self.waiting:
            return []
        task = self.waiting.pop(0)
        words = list(task.words)
        settings = dict(w.split("=", 1) for before, w in zip(words, words[1:]) if before == "--set")
        cluster = words[words.index("--cluster") + 1]
        if task.again:
            command = json.loads((pathlib.Path(words[2]) / "command").read_text())
        else:
            command = words[words.index("--") + 1:]
            run = pathlib.Path(task.folder) / "run"
            run.mkdir(parents=True, exist_ok=True)
            (run / "command").write_text(json.dumps(command))
            (run / "run.toml").touch()
        slack = fake_maya.option(words, "--memory-slack", 0.0, float)
        prediction = fake_maya.predict(command, cluster, settings, slack)
        kind, detail = outcome.judge(1 if prediction["out_of_memory"] else 0, "", prediction)
        return [(task, outcome.Outcome(kind, detail, outcome.summary(prediction), 5.0, task.key,
                                       "simulated again" if task.again else ""))]

    def stop(self):
        self.waiting.clear()


@pytest.fixture
def search(fake, tmp_path, monkeypatch):
    """search(text, method=…) runs a search with the formula; gives the result, with `engine` on it."""
    from maya.search import session

    monkeypatch.chdir(tmp_path)

    def run(text, name="space.toml", out="out", **settings):
        (tmp_path / name).write_text(text)
        engine = FormulaEngine()
        monkeypatch.setattr(session, "make_engine", lambda settings: engine)
        result = session.perform(tmp_path / name, session.Settings(out=str(tmp_path / out), **settings))
        result.engine = engine
        return result

    return run


@pytest.fixture
def maya_search(fake, tmp_path):
    """The command line in a process of its own: maya_search("space.toml", "--jobs", "2")."""
    import subprocess

    def run(*words, timeout=120, **environment):
        return subprocess.run(
            [sys.executable, "-m", "maya.search", *map(str, words)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, "PYTHONPATH": str(HERE.parents[1] / "python"), **environment},
        )

    return types.SimpleNamespace(run=run, path=tmp_path)
