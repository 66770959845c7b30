"""maya search with the real program and a real script."""

import json
import os
import subprocess

from conftest import BIN, MAYA, ROOT

SPACE = """
command = ["python", "examples/train_gpt.py", "--layers", "2", "--width", "256", "--heads", "4", "--steps", "4"]
[parameters]
batch = [2, 4]
speed = [1.0, 0.5]
[flags]
"--batch" = "batch"
[cluster]
name = "h100-sxm"
set = { "host.speed" = "{speed}" }
[objective]
goal = "tokens_per_second"
[baseline]
batch = 2
speed = 1.0
"""


def test_a_search_of_four_configurations(tmp_path):
    (tmp_path / "space.toml").write_text(SPACE)
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    words = [MAYA, "search", str(tmp_path / "space.toml"), "--out", str(tmp_path / "out"), "--json"]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    trials = json.loads(done.stdout)["trials"]
    assert {t["outcome"] for t in trials} == {"ok"} and len(trials) == 4
    by = {(t["batch"], t["speed"]): t for t in trials}
    # One recording per batch; the slower host is simulated from it.
    assert sorted(t["reused"] for t in trials) == ["", "", "simulated again", "simulated again"]
    assert by[2, 0.5]["step_ms"] > by[2, 1.0]["step_ms"]
    assert by[4, 1.0]["memory_bytes"] > by[2, 1.0]["memory_bytes"]
    shown = subprocess.run(
        [MAYA, "search", "--show", str(tmp_path / "out")], env=environment, capture_output=True, text=True
    )
    assert shown.returncode == 0 and "than the baseline" in shown.stdout
    # Again: everything is known.
    again = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert json.loads(again.stdout)["trials"] == trials
