"""Trials as processes: failures, hangs, interruption, parallel runs."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from conftest import HERE

PLAIN = """
command = ["python3", "train.py", "{kind}", "--micro", "{micro}", "--layers", "4"]
[parameters]
kind = ["--fine"]
micro = [1, 2, 4]
[trial]
timeout_s = 20
"""


def write(path, text=PLAIN, **replace):
    for old, new in replace.items():
        text = text.replace(old, new)
    (path / "space.toml").write_text(text)


def test_outcomes_of_all_kinds_are_recorded(maya_search):
    write(maya_search.path, PLAIN.replace('["--fine"]', '["--fine", "--crash", "--unknown-flag", "--hang"]').replace(
        "[1, 2, 4]", "[1]").replace("timeout_s = 20", "timeout_s = 8"))
    done = maya_search.run("space.toml", "--out", "out", "--json", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    rows = {row["kind"]: row for row in json.loads(done.stdout)["trials"]}
    assert rows["--fine"]["outcome"] == "ok"
    assert rows["--crash"]["outcome"] == "crash" and rows["--crash"]["detail"] == "ValueError: heads 12 % tp 5"
    assert rows["--unknown-flag"]["outcome"] == "wrong argument"
    assert "unrecognized arguments: --unknown-flag" in rows["--unknown-flag"]["detail"]
    assert rows["--hang"]["outcome"] == "time limit"
    assert rows["--hang"]["detail"] == "still running after 8 s: loading"  # not what it said of being ended
    assert "sleep 1000" not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout


def test_a_command_that_always_fails_stops_the_search(maya_search):
    write(maya_search.path, PLAIN.replace('["--fine"]', '["--crash"]').replace("[1, 2, 4]", "[1, 2, 3, 4, 5, 6, 7, 8]"))
    done = maya_search.run("space.toml", "--out", "out", "--jobs", "1")
    assert done.returncode == 1
    assert "the first 4 trials failed" in done.stderr and "ValueError: heads 12 % tp 5" in done.stderr
    assert len(list((maya_search.path / "out" / "trials").iterdir())) == 4


def test_interrupt_keeps_what_is_done_and_leaves_no_process(maya_search, tmp_path):
    write(maya_search.path, PLAIN.replace("[1, 2, 4]", "[1, 2, 4, 8, 16, 32]"))
    environment = {
        **os.environ,
        "PYTHONPATH": str(HERE.parents[1] / "python"),
        "FAKE_SECONDS": "2",
        "FAKE_LOG": "log.txt",
    }
    words = [sys.executable, "-m", "maya.search", "space.toml", "--out", "out", "--jobs", "1"]
    # A shell that starts the tests in the background has them ignore SIGINT, and children inherit that.
    process = subprocess.Popen(
        words,
        cwd=maya_search.path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    for line in process.stderr:
        if line.startswith("[2/"):
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "finished trials are kept" in errors
    for _ in range(50):  # a process that was killed needs a moment on a busy machine
        ours = [
            pid for pid in os.listdir("/proc") if pid.isdigit() and str(maya_search.path) in _working_directory(pid)
        ]
        if not ours:
            break
        time.sleep(0.1)
    assert not ours
    started = len((maya_search.path / "log.txt").read_text().splitlines())
    done = maya_search.run("space.toml", "--out", "out", "--json", FAKE_LOG="log.txt")
    assert done.returncode == 0
    trials = json.loads(done.stdout)["trials"]
    assert len(trials) == 6 and {t["outcome"] for t in trials} == {"ok"}
    # Those that were done ran once; at most the interrupted one ran twice.
    assert len((maya_search.path / "log.txt").read_text().splitlines()) <= 7 and started <= 4


def test_interrupt_while_a_trial_is_started_is_not_lost(maya_search):
    write(maya_search.path)
    # Python discards what a signal raises inside the functions it calls after a fork.
    code = ("import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
            "os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGINT));"
            "from maya.search.__main__ import main; sys.exit(main(['space.toml', '--out', 'out', '--jobs', '1']))")
    done = subprocess.run([sys.executable, "-c", code], cwd=maya_search.path, capture_output=True, text=True,
                          timeout=60, env={**os.environ, "PYTHONPATH": str(HERE.parents[1] / "python")})
    assert "Exception ignored" in done.stderr  # otherwise this test shows nothing
    assert done.returncode == 130 and "finished trials are kept" in done.stderr


def _working_directory(pid):
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def test_full_disk_is_reported_and_finished_trials_are_kept(maya_search, tmp_path):
    write(maya_search.path)
    code = ("import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000));"
            "from maya.search.__main__ import main; sys.exit(main(['space.toml', '--out', 'out', '--jobs', '1']))")
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=maya_search.path,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1] / "python")},
    )
    assert done.returncode == 1 and "cannot write" in done.stderr and "Traceback" not in done.stderr, done.stderr
    again = maya_search.run("space.toml", "--out", "out", "--json")
    assert again.returncode == 0 and len(json.loads(again.stdout)["trials"]) == 3


def test_equal_trials_are_reported(maya_search):
    write(maya_search.path, PLAIN.replace('["--fine"]', '["--ignores"]'))
    done = maya_search.run("space.toml", "--out", "out")
    assert done.returncode == 0 and "all trials are equal" in done.stdout


def test_usage_errors_exit_with_2(maya_search):
    assert maya_search.run("missing.toml").returncode == 2
    write(maya_search.path, "command = [\n")
    done = maya_search.run("space.toml")
    assert done.returncode == 2 and "space.toml:" in done.stderr and "Traceback" not in done.stderr
    assert maya_search.run().returncode == 2
    write(maya_search.path)
    assert maya_search.run("space.toml", "--trials", "0").returncode == 2
    assert maya_search.run("space.toml", "--cluster", "nowhere").returncode == 2
    assert maya_search.run("--show", "nothing").returncode == 1
    write(maya_search.path, PLAIN.replace("[1, 2, 4]", "[1]").replace("timeout_s = 20", "timeout_s = 1"))
    maya_search.run("space.toml", "--out", "none", "--minutes", "0.0000001")
    assert "No trial has ended yet" in maya_search.run("--show", "none").stdout


def test_what_would_fail_every_trial_is_said_before_the_first(maya_search):
    write(maya_search.path, PLAIN.replace("train.py", "trian.py"))
    done = maya_search.run("space.toml", "--out", "out")
    assert done.returncode == 2 and not (maya_search.path / "out").exists()
    assert "space.toml:2: the command's script 'trian.py' is not in" in done.stderr
    # A module needs no file here, and what another program makes of a word is its own affair.
    for words in ('"python3", "-m", "trian.py"', '"env", "python3", "trian.py"'):
        write(maya_search.path, PLAIN.replace('"python3", "train.py"', words))
        assert maya_search.run("space.toml", "--out", f"out{len(words)}").returncode == 0
    write(maya_search.path, PLAIN.replace("[1, 2, 4]", "{ integers = [1, 4] }") + "\n[constants]\nmost = 0\n")
    text = (maya_search.path / "space.toml").read_text()
    (maya_search.path / "space.toml").write_text('constraints = ["micro < most"]\n' + text)
    done = maya_search.run("space.toml")
    assert done.returncode == 2 and "micro < most" in done.stderr


def test_trials_run_some_ranks_whatever_starts_them(maya_search):
    for name, words in (("a", '"deepspeed", "train.py"'), ("b", '"bash", "start.sh"'), ("c", '"python3", "train.py"')):
        (maya_search.path / "deepspeed").touch()
        (maya_search.path / "start.sh").touch()
        write(maya_search.path, PLAIN.replace('"python3", "train.py"', words).replace("[1, 2, 4]", "[1]"))
        assert maya_search.run("space.toml", "--out", name).returncode == 0
        (command,) = (maya_search.path / name / "trials").glob("*/command.json")
        started = json.loads(command.read_text())["words"]
        assert started[started.index("--ranks") + 1] == "unique"


def test_parallel_trials_overlap(maya_search):
    write(maya_search.path)
    began = time.monotonic()
    done = maya_search.run("space.toml", "--out", "out", "--jobs", "3", FAKE_SECONDS="3")
    trials = json.loads((pathlib.Path(maya_search.path) / "out" / "results.json").read_text())["trials"]
    assert done.returncode == 0
    assert sum(t["seconds"] for t in trials) > 9 and len(trials) == 3
    del began
