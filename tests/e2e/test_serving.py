"""What serving engines need apart from kernels: queries about the machine, caches, a timely end."""


def test_confidential_computing_is_off(run):
    done = run("python", "-c", """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
assert nvml.nvmlInit_v2() == 0
state = (ctypes.c_uint * 3)(7, 7, 7)
assert nvml.nvmlSystemGetConfComputeState(state) == 0 and list(state) == [0, 0, 0]
settings = (ctypes.c_uint * 5)(20 | 1 << 24, 7, 7, 7, 7)
assert nvml.nvmlSystemGetConfComputeSettings(settings) == 0 and list(settings)[1:] == [0] * 4
assert nvml.nvmlSystemGetConfComputeSettings((ctypes.c_uint * 5)(1)) == 25     # not that version
""", options=("--no-predict",))
    assert done.code == 0, done.stdout + done.stderr


def test_caches_of_engines_stay_in_the_run_directory(run):
    done = run("python", "-c", """
import os
print(os.environ["VLLM_CACHE_ROOT"].startswith(os.environ["MAYA_RUN_DIR"] + "/"), os.environ["DG_JIT_CACHE_DIR"])
""", options=("--no-predict",), DG_JIT_CACHE_DIR="/mine")
    assert done.stdout.split() == ["True", "/mine"], done.stdout


def test_recordings_of_children_that_are_terminated_are_complete(run, tmp_path):
    """Engines send SIGTERM to their workers and SIGKILL five seconds later."""
    script = tmp_path / "engine.py"
    script.write_text("""
import multiprocessing, time, torch

def work(ready):
    x = torch.ones(1000, device="cuda")
    for i in range(20):
        torch.cuda.nvtx.range_push("iteration")
        for j in range(100):
            x = x + 1
        torch.cuda.nvtx.range_pop()
    torch.cuda.synchronize()
    ready.set()
    time.sleep(600)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    child = context.Process(target=work, args=(ready,))
    child.start()
    assert ready.wait(240)
    child.terminate()
    child.join(5)
    print("ended", child.exitcode)
""")
    done = run("python", str(script), options=("--steps", "iteration"))
    assert "ended -15" in done.stdout, done.stdout + done.stderr
    assert done.prediction["step"]["count"] >= 19, done.prediction["step"]      # of 20, the first warms up
    assert "Cut off" not in done.stdout and not any("cut off" in note for note in done.prediction["notes"]), done.stdout


def test_two_events_in_a_row_have_different_times(run):
    """Inductor times a kernel's copies of its arguments, of which there may be none, and divides by the time."""
    code = """
import torch
a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
a.record(); b.record(); torch.cuda.synchronize()
print(0 < a.elapsed_time(b) < 0.1, a.elapsed_time(a))
"""
    for clock in ("recorded", "virtual"):
        done = run("python", "-c", code, options=("--no-predict", "--clock", clock))
        assert done.stdout.split() == ["True", "0.0"], done.stdout + done.stderr
