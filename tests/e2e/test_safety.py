"""Maya does not touch files and processes of others and does not store secrets (docs/security.md)."""

import json
import os
import resource
import signal
import stat
import subprocess
import sys
import textwrap
import time

import pytest
from conftest import MAYA

TOUCH = "import ctypes; print(ctypes.CDLL('libcudart.so.13').cudaDeviceSynchronize(), flush=True)"


def python(run, code, **keywords):
    return run("python", "-c", textwrap.dedent(code), **keywords)


def wait_for(condition, seconds=60):
    deadline = time.time() + seconds
    while time.time() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def test_directory_is_in_use_until_the_last_process_has_ended(run, tmp_path):
    """The launcher is killed; its command continues and keeps its recording."""
    out = tmp_path / "r"
    code = TOUCH + "; import time; time.sleep(600)"
    # subprocess closes inherited descriptors, as torchrun does: the process itself must hold the lock.
    start = [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"]
    launcher = subprocess.Popen(
        [MAYA, "run", "--quiet", "--out", str(out), "--", *start], stdout=subprocess.PIPE, text=True
    )
    try:
        assert launcher.stdout.readline().strip() == "0"
        recording = next(out.glob("*.maya"))
        launcher.kill()
        launcher.wait()
        pids = subprocess.run(["pgrep", "-f", "time.sleep.600."], capture_output=True, text=True).stdout.split()
        second = python(run, TOUCH, out=out, options=("--no-predict",))
        assert second.code == 1 and "still in progress" in second.stderr
        assert recording.exists() and recording.with_name(recording.name + ".tail").exists()
    finally:
        own = {int(p) for p in pids if f"MAYA_RUN_DIR={out}" in environment_of(int(p))}
        for pid in own:
            os.kill(pid, signal.SIGKILL)
    assert own, "the command outlived its launcher"
    assert wait_for(lambda: python(run, TOUCH, out=out, options=("--no-predict",)).code == 0, 30)
    assert not recording.exists() or recording.name == "rank-0.maya"


def test_directory_is_in_use_while_a_forked_program_runs(run, tmp_path):
    """A program of --start forked is not a child of the launcher, which is killed."""
    out, script = tmp_path / "r", tmp_path / "program.py"
    script.write_text(TOUCH + "\nimport os, time; print(os.getpid(), flush=True); time.sleep(600)\n")
    launcher = subprocess.Popen(
        [MAYA, "run", "--quiet", "--start", "forked", "--out", str(out), "--", sys.executable, str(script)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert launcher.stdout.readline().strip() == "0"
    pid = int(launcher.stdout.readline())
    try:
        launcher.kill()
        launcher.wait()
        second = python(run, TOUCH, out=out, options=("--no-predict",))
        assert second.code == 1 and "still in progress" in second.stderr
        assert list(out.glob("*.maya.tail"))
    finally:
        os.kill(pid, signal.SIGKILL)
    assert wait_for(lambda: python(run, TOUCH, out=out, options=("--no-predict",)).code == 0, 60)


@pytest.mark.parametrize("name", ["exchange/optimizer", "exchange/failed-0"])
def test_links_in_the_exchange_are_not_followed(run, tmp_path, name):
    """Whoever can write to a run directory cannot redirect what its processes write there."""
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    done = python(run, f"""
        import os, sys
        folder = os.environ["MAYA_RUN_DIR"] + "/exchange"
        os.makedirs(folder, exist_ok=True)
        link = os.environ["MAYA_RUN_DIR"] + "/{name}"
        if os.path.lexists(link):
            os.unlink(link)
        os.symlink({str(victim)!r}, link)
        import torch
        torch.optim.SGD([torch.ones(2, device="cuda", requires_grad=True)], lr=0.1)
        sys.exit("a failure")
        """, options=("--no-predict",), cluster="h100-sxm", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    assert done.code == 1
    assert victim.read_text() == "theirs"


def environment_of(pid):
    try:
        return open(f"/proc/{pid}/environ", errors="replace").read().split("\0")
    except OSError:
        return []


def test_secrets_do_not_reach_the_run_directory(run, tmp_path):
    secret = "hunter2hunter2"
    done = run(
        "python",
        "-c",
        "import torch; torch.ones(4, device='cuda') + 1",
        f"--token={secret}",
        "--password",
        secret,
        cluster="h100-sxm",
        NVIDIA_API_KEY=secret,
        TORCH_SECRET=secret,
        NCCL_MY_TOKEN=secret,
        CUDA_PASSWORD=secret,
        NCCL_ALGO="Ring",
    )
    assert done.code == 0, done.stderr
    for path in done.out.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
    assert "--token=***" in done.prediction["command"]
    assert secret not in done.stdout


def test_a_run_directory_is_private(run):
    done = python(run, TOUCH, options=("--no-predict",))
    assert stat.S_IMODE(done.out.stat().st_mode) == 0o700
    for path in done.out.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_files_of_the_user_are_not_removed(run, tmp_path):
    mine = tmp_path / "mine"
    (mine / "ptx").mkdir(parents=True)
    names = ["run.toml", ".lock", "rank-0.maya", "process-1.maya", "stdout", "ptx/kernel"]
    for name in names:
        (mine / name).write_text("mine")
    done = python(run, TOUCH, out=mine)
    assert done.code == 1 and "not made by" in done.stderr
    assert all((mine / name).read_text() == "mine" for name in names)


def test_symbolic_links_in_a_run_directory_are_not_followed(run, tmp_path):
    out = tmp_path / "run"
    assert python(run, TOUCH, out=out, options=("--no-predict",)).code == 0
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    for name in ("prediction.json", "report.html", "notes.txt", "rank-0.maya.tail"):
        (out / name).unlink(missing_ok=True)
        (out / name).symlink_to(victim)
    assert python(run, "import torch; torch.ones(4, device='cuda') + 1", out=out).code == 0
    assert victim.read_text() == "theirs"


def test_text_of_a_recording_does_not_reach_the_terminal(run, maya):
    done = python(run, """
        import ctypes, torch
        x = torch.ones(4, device="cuda") + 1
        nvtx = ctypes.CDLL("libnvToolsExt.so.1")
        for _ in range(3):
            nvtx.nvtxRangePushA(b"\\x1b]0;owned\\x07\\x1b[2Jstep")
            (x + 1).sum().item()
            nvtx.nvtxRangePop()
        """)
    assert done.code == 0, done.stderr
    for words in (
        ("predict", str(done.out)),
        ("trace", str(done.out), "--format", "csv"),
        ("compare", str(done.out), str(done.out)),
    ):
        shown = maya(*words)
        assert shown.returncode == 0, shown.stderr
        assert "\x1b" not in shown.stdout + shown.stderr and "\x07" not in shown.stdout
    hostile = maya("predict", "\x1b[31mred")
    assert "\x1b" not in hostile.stderr and "\\e[31mred" in hostile.stderr


def limited(bytes_):
    """Simulates a full disk: no file may grow beyond this many bytes."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, bytes_))
    return limit


def test_a_prediction_that_cannot_be_stored_is_printed(run):
    done = python(run, "import torch; torch.ones(4, device='cuda') + 1", cluster="h100-sxm")
    assert done.code == 0, done.stderr
    before = (done.out / "prediction.json").read_bytes()
    again = subprocess.run([MAYA, "predict", str(done.out)], capture_output=True, text=True, preexec_fn=limited(100))
    assert "Memory" in again.stdout
    assert "cannot write" in again.stderr
    assert again.returncode == 3
    assert (done.out / "prediction.json").read_bytes() == before, "the old one stays whole"


@pytest.mark.parametrize("code", [0, 7])
def test_exit_code_is_that_of_the_command(run, code):
    done = run("bash", "-c", f"exit {code}")
    assert done.code == code
    assert "nothing was recorded" in done.stderr


def test_a_run_inside_a_run_is_refused_in_one_line(run, tmp_path):
    done = run(MAYA, "run", "--out", str(tmp_path / "inner"), "--", sys.executable, "-c", "print('ran')")
    complaints = [line for line in done.stderr.splitlines() if "inside another" in line]
    assert len(complaints) == 1, done.stderr
    assert "ld.so" not in done.stderr
    assert not (tmp_path / "inner").exists()


def test_prediction_of_another_version_is_reported(maya, tmp_path):
    other = tmp_path / "prediction.json"
    for text in ('{"version": "2"}', '{"version": 2}', "[]", '{"version": {"a": 1}}', "[" * 100000):
        other.write_text(text)
        done = maya("compare", str(other), str(other))
        assert done.returncode == 1 and "create it again" in done.stderr, done.stderr


@pytest.mark.parametrize("cluster", ["fifo.toml", "/dev/zero.toml", "long"])
def test_a_cluster_name_cannot_hang_the_program(maya, tmp_path, cluster):
    if cluster == "fifo.toml":
        os.mkfifo(tmp_path / cluster)
        cluster = str(tmp_path / cluster)
    elif cluster.startswith("/dev"):
        os.symlink("/dev/zero", tmp_path / "zero.toml")
        cluster = str(tmp_path / "zero.toml")
    else:
        cluster = "x" * 100_000
    done = subprocess.run(
        [MAYA, "run", "--cluster", cluster, "--out", str(tmp_path / "r"), "--", "true"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0 and len(done.stderr) < 2000


@pytest.mark.parametrize("setting", ["scale.gemm=1e308", "host.speed=0", "host.speed=-1"])
def test_unknown_setting_is_rejected(run, maya, setting, tmp_path):
    done = maya("run", "--set", setting, "--out", str(tmp_path / "r"), "--", "true")
    assert done.returncode != 0 and setting.split("=")[0] in done.stderr


def test_implausible_benchmark_is_reported(run, maya):
    done = python(run, "import torch; torch.ones(4, device='cuda') + 1", cluster="h100-sxm")
    toml = done.out / "run.toml"
    lines = [line for line in toml.read_text().splitlines() if not line.startswith("benchmark_us")]
    for extra, said in (([], "does not say how fast"), (["benchmark_us = 0.001"], "not plausible")):
        toml.write_text("\n".join(lines + extra) + "\n")
        notes = json.loads(maya("predict", str(done.out), "--json").stdout)["notes"]
        assert any(said in note for note in notes), notes


def test_a_world_size_out_of_range_is_ignored(run):
    for size in ("-4", "99999999999999999999"):
        done = python(run, "import torch; torch.ones(4, device='cuda') + 1", cluster="h100-sxm", WORLD_SIZE=size)
        assert done.code == 0, done.stderr
        assert done.prediction["world_size"] == 1
