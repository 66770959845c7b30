"""Programs that are forked (`maya run --start forked`) behave as if they were started normally. See docs/starts.md."""

import csv
import io
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest
from conftest import MAYA

TRAIN = ("torchrun", "--nproc-per-node", "2", "examples/train_gpt.py", "--layers", "2", "--steps", "3")


@pytest.fixture(scope="module")
def starts():
    """A directory of templates as a search has one, so that all tests here share them."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="maya-test-"))
    (directory / "owner").write_text(str(os.getpid()))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def both(run, tmp_path, starts):
    """Runs a command once normally and once forked."""
    def call(*command, **options):
        words = ("--no-predict",) if options.pop("record_only", True) else ()
        return [run(*command, out=tmp_path / how, options=("--start", how, "--quiet", *words), cluster="dgx-h100",
                    MAYA_START_DIR=str(starts), **options) for how in ("plain", "forked")]

    return call


def script(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(text)
    return str(path)


WAS_FORKED = "__import__('os').path.exists('/proc/%d/cmdline' % __import__('os').getppid()) and " \
             "'template.py' in open('/proc/%d/cmdline' % __import__('os').getppid()).read()"


def test_recordings_are_the_same(both, maya, starts):
    plain, forked = both(*TRAIN, record_only=False)
    assert plain.code == 0 and forked.code == 0, forked.stderr
    # Nothing that a template read while it imported torch kept it from becoming a rank.
    refusals = [
        line for log in starts.glob("*.log") for line in log.read_text().splitlines() if "other variables" in line
    ]
    assert not refusals

    def asked(done):
        rows = csv.DictReader(io.StringIO(maya("trace", str(done.out), "--format", "csv").stdout))
        return [(row["ranks"], row["stream"], row["step"], row["kind"], row["name"], row["sizes"]) for row in rows]

    assert len(asked(plain)) > 500
    assert asked(forked) == asked(plain)
    a, b = plain.prediction, forked.prediction
    assert [rank["peak_bytes"] for rank in b["memory"]] == [rank["peak_bytes"] for rank in a["memory"]]
    assert b["step"]["count"] == a["step"]["count"] and b["flops_per_step"] == a["flops_per_step"]


def test_program_sees_the_emulated_environment(both, tmp_path):
    text = f"""
import os, sys
forked = {WAS_FORKED}
import numpy, torch
print(sys.argv, sys.path[0], sys.orig_argv[-3:], __name__, __file__, sys.stdout.write_through, os.getcwd(), os.environ["MARK"])
print(open("/proc/self/cmdline").read().rstrip(chr(0)).split(chr(0))[-2:], sorted(os.listdir("/proc/self/fd"))[:3])
print([name for name in globals() if not name.startswith("__")], sys.modules["__main__"].__dict__ is globals())
print("forked:", forked, file=sys.stderr)
"""
    plain, forked = both("python", "-u", script(tmp_path, text), "a", "b c", MARK="here")
    assert forked.stdout == plain.stdout
    assert "forked: True" in forked.stderr and "forked: False" in plain.stderr


@pytest.mark.parametrize("end, code", [
    ("raise ValueError('wrong')", 1), ("sys.exit('a message')", 1), ("sys.exit(7)", 7), ("sys.exit()", 0),
    ("os.kill(os.getpid(), signal.SIGKILL)", 137), ("os.abort()", 134), ("os._exit(3)", 3)])
def test_ends_are_the_same(both, tmp_path, end, code):
    text = f"""
import atexit, os, signal, sys
atexit.register(print, "at exit")
class Guard:
    def __del__(self):
        print("deleted", flush=True)
guard, file = Guard(), open(os.environ["LEFT"], "w")
file.write("not flushed by the program")
import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
{end}
"""
    left = tmp_path / "left"
    plain, forked = both("python", script(tmp_path, text), LEFT=str(left))
    assert (forked.stdout, [l for l in forked.stderr.splitlines() if not l.startswith("maya:")]) == (
        plain.stdout, [l for l in plain.stderr.splitlines() if not l.startswith("maya:")])
    assert forked.code == plain.code == code
    if code in (0, 1, 7):
        assert left.read_text() == "not flushed by the program"


def test_a_variable_set_before_the_import_counts(both, tmp_path):
    text = "import os\nos.environ['OMP_NUM_THREADS'] = '1'\nimport torch\nprint(torch.get_num_threads())\n"
    plain, forked = both("python", script(tmp_path, text))
    assert forked.stdout == plain.stdout == "1\n"


def test_a_module_beside_the_program_counts(both, tmp_path):
    (tmp_path / "numpy.py").write_text("mine = True\n")
    plain, forked = both("python", script(tmp_path, "import numpy\nprint(numpy.mine)\n"))
    assert forked.stdout == plain.stdout == "True\n"


def test_other_variables_get_another_template(both, tmp_path):
    text = "import torch\nprint(torch.get_num_threads())\n"
    plain, forked = both("python", script(tmp_path, text), OMP_NUM_THREADS="1")
    assert forked.stdout == plain.stdout == "1\n"


def test_each_random_program_has_its_own_seed(run, tmp_path, starts):
    text = "import numpy, random, torch\nprint(torch.initial_seed(), numpy.random.random(), random.random())\n"
    first, second = [run("python", script(tmp_path, text), out=tmp_path / name, MAYA_START_DIR=str(starts),
                         options=("--start", "forked", "--no-predict")).stdout.split() for name in ("first", "second")]
    assert len(first) == 3 and not set(first) & set(second)


def test_signals_reach_the_program(tmp_path, starts):
    text = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("asked to end", flush=True), sys.exit(5)))
print("pid", os.getpid(), flush=True)
time.sleep(60)
"""
    run = subprocess.Popen(
        [
            MAYA,
            "run",
            "--start",
            "forked",
            "--quiet",
            "--no-predict",
            "--out",
            str(tmp_path / "run"),
            "--",
            sys.executable,
            script(tmp_path, text),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "MAYA_START_DIR": str(starts)},
    )
    process = int(run.stdout.readline().split()[1])
    run.send_signal(signal.SIGTERM)
    out, _ = run.communicate(timeout=60)
    assert out == "asked to end\n" and run.returncode == 5
    assert not pathlib.Path(f"/proc/{process}").exists()


def test_templates_end_with_their_run(run, tmp_path):
    text = "import os\nprint(os.getppid())\n"
    done = run("python", script(tmp_path, text), options=("--start", "forked", "--quiet", "--no-predict"))
    template = pathlib.Path(f"/proc/{int(done.stdout)}/cmdline")
    for _ in range(100):
        if not template.exists() or "template.py" not in template.read_text():
            break
        time.sleep(0.1)
    else:
        pytest.fail("the template outlived its run")


def test_a_template_does_not_hold_the_directory_of_its_first_run(run, tmp_path, starts):
    text = script(tmp_path, "import torch; print(torch.zeros(1, device='cuda').sum().item())")
    for _ in range(2):
        done = run("python", text, out=tmp_path / "same", options=("--start", "forked", "--quiet", "--no-predict"),
                   MAYA_START_DIR=str(starts))
        assert done.code == 0, done.stderr


def test_a_missing_starter_is_named(tmp_path):
    installed = pathlib.Path(MAYA).resolve().parents[1]
    copy = tmp_path / "maya"
    copy.mkdir()
    for name in ("libexec", "catalog"):
        (copy / name).symlink_to(installed / name)
    shutil.copytree(installed / "lib" / "maya", copy / "lib" / "maya", symlinks=True,
                    ignore=shutil.ignore_patterns("start"))
    (copy / "bin").mkdir()
    shutil.copy(installed / "bin" / "maya", copy / "bin" / "maya")
    done = subprocess.run([copy / "bin" / "maya", "run", "--start", "forked", "--out", tmp_path / "run", "--", "true"],
                          capture_output=True, text=True)
    assert done.returncode != 0 and "maya-start, which is not there" in done.stderr, done.stderr
    assert not (tmp_path / "run").exists()


def test_a_script_that_is_named_python_runs_as_a_script(run, tmp_path, starts):
    """pyenv puts such scripts into PATH."""
    shim, program = tmp_path / "python", tmp_path / "train.py"
    shim.write_text(f'#!/usr/bin/env bash\nexec {sys.executable} "$@"\n')
    shim.chmod(0o755)
    program.write_text("import torch; print('on', torch.ones(2, device='cuda').device)\n")
    done = run(str(shim), str(program), cluster="h100-sxm", options=("--start", "forked", "--no-predict"),
               MAYA_START_DIR=str(starts))
    assert done.code == 0 and "on cuda:0" in done.stdout, done.stderr


STEPS = """
import os, torch
print("template", os.getppid(), flush=True)
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(100000):
    optimizer.zero_grad()
    model(torch.ones(8, 64, device="cuda")).sum().backward()
    optimizer.step()
"""


def test_a_job_that_is_stopped_leaves_the_template_to_others(run, tmp_path, starts):
    (tmp_path / "steps.py").write_text(STEPS)
    done = run(sys.executable, str(tmp_path / "steps.py"), cluster="h100-sxm", MAYA_START_DIR=str(starts),
               options=("--start", "forked", "--stop-after", "2", "--no-predict"))
    assert done.code == 0 and "the command was stopped" in done.stderr, done.stderr
    template = int(done.stdout.split("template ")[1].split()[0])
    assert pathlib.Path(f"/proc/{template}/comm").read_text() == "maya-template\n"


KEEPS = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("template", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
template = object.__new__(module.Template)
template.modules_file, template.results_file, template.bad = sys.argv[2], sys.argv[3], []
for turn in range(60):
    template.names = ["json"]
    assert template.take_results() is False
"""


def test_templates_that_keep_names_at_the_same_time_go_on(tmp_path):
    """Several searches share the file of modules. A template that ended over it took its programs with it."""
    template = pathlib.Path(__file__).parents[2] / "src" / "cli" / "start" / "template.py"
    (tmp_path / "tried").write_text("json\n")
    words = [sys.executable, "-c", KEEPS, str(template), str(tmp_path / "modules"), str(tmp_path / "tried")]
    running = [subprocess.Popen(words, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in running:
        errors = process.communicate(timeout=120)[1]
        assert process.returncode == 0, errors
    assert sorted(p.name for p in tmp_path.iterdir()) == ["modules", "tried"]
