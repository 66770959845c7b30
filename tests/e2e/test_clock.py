"""`maya run --clock virtual`: the program's own clocks, timed waits and profiler show the cluster
(docs/virtual-time.md)."""

import json
import re
import statistics
import subprocess
import sys
import time

import pytest
from conftest import MAYA, ROOT

VIRTUAL = ("--clock", "virtual")
CLOCK = ROOT / "tests" / "clock"


def test_a_thousand_timed_waits_end_in_order_and_on_time(run):
    done = run("python", str(CLOCK / "timed_waits.py"), options=(*VIRTUAL, "--no-predict"))
    assert "1000 waits, 0 wrong" in done.stdout, done.stdout + done.stderr


def test_random_programs_end_when_a_reference_says(run):
    done = run("python", str(CLOCK / "random_programs.py"), "200", options=(*VIRTUAL, "--no-predict"))
    found = re.search(r"200 programs, (\d+) wrong", done.stdout)
    # On a machine with more work than processors, who gets a lock first can differ in one program of a thousand.
    assert found and int(found.group(1)) <= 1, done.stdout + done.stderr


def test_odd_uses_of_time(run):
    done = run("python", str(CLOCK / "odd_cases.py"), options=(*VIRTUAL, "--no-predict"))
    assert done.stdout.count(" ok\n") == 7, done.stdout + done.stderr


def test_the_clock_is_real_unless_asked(run, tmp_path):
    script = tmp_path / "s.py"
    script.write_text("import time; a = time.monotonic(); time.sleep(0.3); print(time.monotonic() - a)")
    began = time.monotonic()
    done = run("python", str(script), options=("--no-predict",))
    assert time.monotonic() - began > 0.3 and 0.3 <= float(done.stdout) < 60


def test_a_stopped_process_does_not_stop_the_others_for_ever(tmp_path):
    script = tmp_path / "s.py"
    script.write_text("""
import os, signal, sys, time
child = os.fork()
if child == 0:
    while True: pass  # would hold time back until it has worked as long
os.kill(child, signal.SIGSTOP)
time.sleep(1000)
os.kill(child, signal.SIGKILL)
print("woke")
""")
    done = subprocess.run([MAYA, "run", *VIRTUAL, "--no-predict", "--out", str(tmp_path / "run"), "--", sys.executable,
                           str(script)], capture_output=True, text=True, timeout=200)
    assert "woke" in done.stdout
    assert "virtual time stood still" in done.stderr


def step_times(done) -> list[float]:
    found = re.search(r"step times (\[.*\])", done.stdout)
    assert found, done.stdout + done.stderr
    return [1e3 * seconds for seconds in json.loads(found.group(1))]


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_scripts_own_step_times_agree_with_the_prediction(run, ranks):
    script = [str(CLOCK / "step_times.py"), "examples/train_gpt.py", "--layers", "4", "--steps", "8"]
    command = ("torchrun", "--nproc-per-node", str(ranks), *script) if ranks > 1 else ("python", *script)
    done = run(*command, options=(*VIRTUAL, "--no-report"))
    assert done.code == 0, done.stderr
    live, predicted = statistics.median(step_times(done)[1:]), done.prediction["step"]["ms"]
    assert live == pytest.approx(predicted, rel=0.02)
    assert any("are the cluster's" in note for note in done.prediction["notes"]) or ranks > 1


PROFILE = """
import json, sys, torch
from torch.profiler import ProfilerActivity, profile
model = torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 4096)).cuda().bfloat16()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
def step():
    model(x).float().pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
step()
torch.cuda.synchronize()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
    for _ in range(3):
        step()
    torch.cuda.synchronize()
profiler.export_chrome_trace(sys.argv[1])
rows = {row.key: row.device_time_total for row in profiler.key_averages()}
print(json.dumps([rows["aten::mm"], sum(row.self_device_time_total for row in profiler.key_averages()
                                         if row.self_cpu_time_total == 0 and "Optimizer" not in row.key)]))
"""


@pytest.mark.parametrize("clock", ["recorded", "virtual"])
def test_torch_profiler_shows_the_predicted_kernels(run, tmp_path, clock):
    script, trace = tmp_path / "s.py", tmp_path / "trace.json"
    script.write_text(PROFILE)
    done = run("python", str(script), str(trace), cluster="h100-sxm", options=("--clock", clock, "--no-report"))
    assert done.code == 0, done.stderr
    products, kernels = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("[")))
    predicted = done.prediction["breakdown_ms"]["compute"] * 1e3 * 3
    assert products > 0
    # In virtual time the profiler reads the processor's counter, which is real: stamps are fitted to that.
    assert kernels == pytest.approx(predicted, rel=0.02)
    events = json.loads(trace.read_text())["traceEvents"]
    shown = [e for e in events if e.get("cat") == "kernel"]
    assert len(shown) >= 3 * 10
    launches = {e["args"]["correlation"]: e for e in events if e.get("cat") == "cuda_runtime"}
    for kernel in shown:
        assert kernel["args"]["correlation"] in launches
        assert kernel["args"]["stream"] == 7
    elementwise = [e for e in shown if "elementwise" in e["name"]]
    assert any(e["args"]["grid"][0] > 1 and e["args"]["block"][0] >= 32 for e in elementwise)
    assert any(e["args"]["shared memory"] > 0 for e in shown if "reduce_kernel" in e["name"])
    if clock == "recorded":
        assert all(k["ts"] >= launches[k["args"]["correlation"]]["ts"] for k in shown)
