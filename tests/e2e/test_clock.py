"""`maya run --clock virtual`: the program's own clocks, timed waits and profiler show the cluster
(docs/virtual-time.md)."""

import importlib.util
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
    assert "200 programs, 200 run, 0 wrong" in done.stdout, done.stdout + done.stderr


def test_odd_uses_of_time(run):
    done = run("python", str(CLOCK / "odd_cases.py"), options=(*VIRTUAL, "--no-predict"))
    assert done.stdout.count(" ok\n") == 13, done.stdout + done.stderr


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
    assert "virtual time was blocked" in done.stderr


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


@pytest.mark.parametrize("script, ranks", [("fp8.py", 1), ("pipeline.py", 2)])
def test_a_host_bound_script_agrees_with_the_prediction_step_by_step(run, script, ranks):
    """Threads that wait for each other (the backward pass) are simulated as the clock counted them. Host times of
    single steps are equalized, so all steps together are compared."""
    words = [str(CLOCK / "step_times.py"), f"tests/workloads/{script}"]
    command = ("torchrun", "--nproc-per-node", str(ranks), *words) if ranks > 1 else ("python", *words)
    done = run(*command, options=(*VIRTUAL, "--no-report"))
    assert done.code == 0, done.stderr
    live = step_times(done)
    assert sum(live) == pytest.approx(sum(done.prediction["step"]["each_ms"][1:len(live) + 1]), rel=0.02)


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
    assert all(k["ts"] >= launches[k["args"]["correlation"]]["ts"] for k in shown)
    assert any(e["args"]["registers per thread"] > 0 for e in elementwise)


# What HolisticTraceAnalysis and TensorBoard's plugin read: steps, kernels by kind, communication with its metadata, and
# what waits for what.
TRACED = """
import os, sys, time, torch, torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule
from torch._C._profiler import _ExperimentalConfig
rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
model = torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 4096)).cuda().bfloat16()
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(16384, 4096, device="cuda", dtype=torch.bfloat16)
times = []
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], schedule=schedule(wait=2, warmup=1, active=3),
             on_trace_ready=lambda p: p.export_chrome_trace(f"{sys.argv[1]}/rank{rank}.json"), profile_memory=True,
             experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True)) as profiler:
    for _ in range(7):
        begin = time.perf_counter()
        model(x).float().pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
        profiler.step()
if rank == 0:
    print("own", *times)
dist.destroy_process_group()
"""


def traced_events(file):
    """Events by category, and the profiler's steps."""
    events = json.loads(file.read_text())["traceEvents"]
    of = {kind: [e for e in events if e.get("cat") == kind] for kind in {e.get("cat") for e in events}}
    steps = [e for e in of["user_annotation"] if e["name"].startswith("ProfilerStep")]
    return of, sorted(steps, key=lambda e: e["ts"])


def durations(kernels, steps):
    begin, end = steps[0]["ts"], steps[-1]["ts"] + steps[-1]["dur"]
    return [e["dur"] for e in sorted(kernels, key=lambda e: e["ts"]) if begin <= e["ts"] < end]


def test_a_profile_of_two_ranks_agrees_with_the_prediction(run, tmp_path):
    script = tmp_path / "s.py"
    script.write_text(TRACED)
    done = run("torchrun", "--nproc-per-node", "2", str(script), str(tmp_path), options=(*VIRTUAL, "--no-report"))
    assert done.code == 0, done.stderr
    own = [float(t) for t in next(line for line in done.stdout.splitlines() if line.startswith("own")).split()[1:]]
    of, steps = traced_events(tmp_path / "rank0.json")
    # CPU ops have the job's time: steps are as long as the script measured, calls lie within their ops.
    assert [e["dur"] for e in steps] == pytest.approx([t * 1e6 for t in own[3:6]], rel=0.02)
    ops = {e["args"]["External id"]: e for e in of["cpu_op"]}
    calls = [e for e in of["cuda_runtime"] if e["args"].get("External id") in ops]
    assert len(calls) > 50
    # PyTorch relates the two clocks of ops and calls by reading one after the other, which takes a microsecond or more of
    # the job's time: all stamps of ops are off by as much, which shows where a call is at the very edge of its op.
    outside = []
    for call in calls:
        op = ops[call["args"]["External id"]]
        outside.append(max(op["ts"] - call["ts"], call["ts"] + call["dur"] - op["ts"] - op["dur"]))
    assert max(outside) < 5 and sum(us > 1 for us in outside) <= 0.05 * len(outside), sorted(outside)[-10:]
    # Kernels by kind, as the prediction has them (it counts copies within the device as computation).
    communication = [e for e in of["kernel"] if e["name"].startswith("ncclDevKernel_")]
    computing = [e for e in of["kernel"] if e not in communication] + of.get("gpu_memcpy", []) + of.get("gpu_memset", [])
    breakdown = done.prediction["breakdown_ms"]
    assert sum(durations(computing, steps)) / 3e3 == pytest.approx(breakdown["compute"], rel=0.01)
    # The kernel of the rank that comes first also waits for the other one.
    both = [durations(communication, steps)]
    of_other, steps_of_other = traced_events(tmp_path / "rank1.json")
    both.append(durations([e for e in of_other["kernel"] if e["name"].startswith("ncclDevKernel_")], steps_of_other))
    assert len(both[0]) == len(both[1]) > 0
    without_waiting = sum(map(min, *both)) / 3e3
    assert without_waiting == pytest.approx(breakdown["communication"] - breakdown["waiting"], rel=0.01)
    for kernel in communication:
        assert kernel["args"]["Collective name"] == "all_reduce" and kernel["args"]["Group size"] == 2
    # The compute stream waits for the communication's event, and the event for its kernel.
    waits = [e for e in of["cuda_sync"] if e["name"] == "Stream Wait Event"]
    streams = {communication[0]["args"]["stream"], 7}
    assert any({e["args"]["stream"], e["args"]["wait_on_stream"]} == streams for e in waits)
    ends = {round(e["ts"] + e["dur"], 1) for e in communication}
    assert any(round(e["ts"], 1) in ends for e in of["cuda_event"] if e["args"]["stream"] != 7)
    assert any(e["name"] == "[memory]" and e["args"].get("Device Id") == 0 for e in of["cpu_instant_event"])


MONITORED = """
import ctypes, json, os, subprocess, sys, time, torch
nvml = ctypes.CDLL("libnvidia-ml.so.1")
nvml.nvmlInit_v2()
device = ctypes.c_void_p()
nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))
class Pair(ctypes.Structure):
    _fields_ = [("first", ctypes.c_uint), ("second", ctypes.c_uint)]
def figures():
    rates, power, warm, energy = Pair(), ctypes.c_uint(), ctypes.c_uint(), ctypes.c_ulonglong()
    nvml.nvmlDeviceGetUtilizationRates(device, ctypes.byref(rates))
    nvml.nvmlDeviceGetPowerUsage(device, ctypes.byref(power))
    nvml.nvmlDeviceGetTemperature(device, 0, ctypes.byref(warm))
    nvml.nvmlDeviceGetTotalEnergyConsumption(device, ctypes.byref(energy))
    return [rates.first, rates.second, power.value / 1e3, warm.value, energy.value / 1e3]
def work(multiply, pause):
    begin = time.monotonic()
    while time.monotonic() - begin < 3:
        for _ in range(8):
            multiply()
        torch.cuda.synchronize()
        time.sleep(pause)
    return figures()
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
x = torch.randn(1 << 28, device="cuda")
out = {"idle": figures()}
out["products"] = work(lambda: a @ a, 0)
out["half"] = work(lambda: a @ a, 0.0122)
query = "--query-gpu=utilization.gpu,memory.used,power.draw"
out["smi"] = subprocess.run(["nvidia-smi", query, "--format=csv,noheader,nounits", "--id=0"], text=True,
                            capture_output=True).stdout
out["page"] = subprocess.run(["nvidia-smi"], text=True, capture_output=True).stdout
out["watcher"] = json.loads(subprocess.run([sys.executable, "-c", sys.argv[1]], text=True, capture_output=True).stdout)
out["own"] = os.getpid()
out["copies"] = work(lambda: x.add_(1), 0)
time.sleep(5)
out["idle again"] = figures()
print("figures " + json.dumps(out))
"""


ZMQ = """
import time, zmq
socket = zmq.Context().socket(zmq.PULL)
socket.bind("tcp://127.0.0.1:*")
poller = zmq.Poller()
poller.register(socket, zmq.POLLIN)
for ms in (50, 500, 2000):
    begin = time.monotonic()
    poller.poll(ms)
    print("waited", ms, time.monotonic() - begin)
"""


def test_libzmq_does_not_read_the_real_counter(run, tmp_path):
    if importlib.util.find_spec("zmq") is None:
        pytest.skip("no pyzmq here")
    script = tmp_path / "s.py"
    script.write_text(ZMQ)
    done = run("python", str(script), options=(*VIRTUAL, "--no-predict"))
    waits = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("waited")]
    assert len(waits) == 3, done.stderr
    for asked, took in waits:
        assert float(took) == pytest.approx(int(asked) / 1e3, rel=0.2)


# A monitor: another process, which uses NVML only.
WATCHER = """
import ctypes, json
nvml = ctypes.CDLL("libnvidia-ml.so.1")
nvml.nvmlInit_v2()
device = ctypes.c_void_p()
nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))
class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("bytes", ctypes.c_ulonglong), ("a", ctypes.c_uint), ("b", ctypes.c_uint)]
class Sample(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("time", ctypes.c_ulonglong)] + [(n, ctypes.c_uint) for n in ("sm", "m", "e", "d")]
class Temperature(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("sensor", ctypes.c_int), ("celsius", ctypes.c_int)]
count = ctypes.c_uint(8)
processes, samples, warm = (Process * 8)(), (Sample * 8)(), Temperature(1 << 24 | ctypes.sizeof(Temperature), 0, 0)
assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(count), processes) == 0
running = [[p.pid, p.bytes] for p in processes[:count.value]]
assert nvml.nvmlDeviceGetProcessUtilization(device, samples, ctypes.byref(count), ctypes.c_ulonglong(0)) == 0
assert nvml.nvmlDeviceGetTemperatureV(device, ctypes.byref(warm)) == 0
print(json.dumps([running, [[s.pid, s.sm] for s in samples[:count.value]], warm.celsius]))
"""


def test_monitors_see_what_the_device_does(run, tmp_path):
    script = tmp_path / "s.py"
    script.write_text(MONITORED)
    done = run("python", str(script), WATCHER, cluster="h100-sxm", options=(*VIRTUAL, "--no-predict"))
    assert done.code == 0, done.stderr
    found = json.loads(re.search(r"figures (\{.*\})", done.stdout).group(1))
    for idle in ("idle again",):
        assert found[idle][:2] == [0, 0] and found[idle][2] == pytest.approx(70) and found[idle][3] == 30
    busy = found["products"]
    assert busy[0] >= 95 and busy[1] < 40 and 500 < busy[2] <= 700 and 55 < busy[3] <= 70
    assert 30 <= found["half"][0] <= 70 and found["half"][2] < 0.8 * busy[2]
    assert found["copies"][0] >= 95 and found["copies"][1] >= 80
    utilization, used, watts = (float(word) for word in found["smi"].split(","))
    assert 30 <= utilization <= 70 and used > 1000 and 100 < watts < 600
    own = found["own"]
    running, samples, celsius = found["watcher"]
    assert [process for process, _ in running] == [own], "a monitor has no context of its own"
    assert running[0][1] > 1000 << 20 and celsius > 35
    assert [process for process, _ in samples] == [own] and 30 <= samples[0][1] <= 70
    assert re.search(rf" {own} +C +.*python.* {running[0][1] >> 20}MiB \|\n", found["page"]), found["page"]
    # Energy is power over time: three seconds of each, and the pause.
    assert found["idle again"][4] > found["products"][4] > 1000
