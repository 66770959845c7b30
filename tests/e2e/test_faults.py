"""What goes wrong during a run ends in the error CUDA documents, or in a result; nothing recorded is lost."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from conftest import BIN, MAYA, ROOT

NVCC = shutil.which("nvcc") or ("/usr/local/cuda/bin/nvcc" if os.path.exists("/usr/local/cuda/bin/nvcc") else None)


def python(run, code, **keywords):
    return run("python", "-c", textwrap.dedent(code), **keywords)


def test_out_of_memory_is_a_result(run):
    done = python(run, """
        import torch
        kept = [torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(1000)]
        """, cluster="h100-sxm")
    assert done.code == 1
    assert "torch.OutOfMemoryError: CUDA out of memory" in done.stderr
    oom = done.prediction["out_of_memory"]
    assert oom["rank"] == 0
    assert oom["requested_bytes"] == 1 << 30
    assert 70 << 30 < oom["in_use_bytes"] <= oom["capacity_bytes"]


def test_out_of_memory_can_be_survived(run):
    done = python(run, """
        import torch
        try:
            torch.empty(200 << 30, dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError:
            print("survived", torch.cuda.mem_get_info()[0] > 70 << 30)
        """, cluster="h100-sxm")
    assert done.code == 0, done.stderr
    assert "survived True" in done.stdout


def test_a_process_that_leaves_by_exit_has_a_whole_recording(run):
    done = python(run, """
        import os, torch
        model = torch.nn.Linear(64, 64, device="cuda")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
        for _ in range(4):
            model(torch.randn(8, 64, device="cuda")).sum().backward()
            optimizer.step()
        os._exit(3)
        """, cluster="h100-sxm")
    assert done.code == 3
    assert [r.name for r in done.recordings] == ["rank-0.maya"]
    assert not list(done.out.glob("*.tail"))
    assert not any("cut off" in note for note in done.prediction["notes"])


def test_thread_that_uses_python_at_its_end_does_not_abort(run, tmp_path):
    """As PyTorch's backward threads do when a program ends right behind them."""
    (tmp_path / "late.cpp").write_text("""
        #include <thread>
        #include <unistd.h>
        extern "C" int PyGILState_Ensure();
        extern "C" int %s();
        extern "C" void start() {
          std::thread([]() noexcept {
            while (!%s()) usleep(100);
            PyGILState_Ensure();
          }).detach();
        }""" % ((("Py_IsFinalizing" if sys.version_info >= (3, 13) else "_Py_IsFinalizing"),) * 2))
    library = tmp_path / "liblate.so"
    subprocess.run(["c++", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "late.cpp")], check=True)
    done = python(run, f"""
        import ctypes, time
        class Slow:
            def __del__(self, sleep=time.sleep):
                sleep(0.5)
        ctypes.CDLL("libcudart.so.13").cudaDeviceSynchronize()
        ctypes.CDLL({str(library)!r}).start()
        slow = Slow()
        """, options=("--no-predict",))
    assert done.code == 0, done.stderr


RUNTIME = """
    import ctypes, torch
    torch.cuda.init()
    cuda = ctypes.CDLL("libcudart.so.13")
    """


def test_double_free(run):
    done = python(run, RUNTIME + """
    pointer = ctypes.c_void_p()
    print(cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1024)), cuda.cudaFree(pointer), cuda.cudaFree(pointer))
    """, options=("--no-predict",))
    assert done.code == 0, done.stderr
    assert done.stdout.splitlines()[0] == "0 0 1", "cudaErrorInvalidValue"


def test_use_of_a_destroyed_stream(run):
    done = python(
        run,
        RUNTIME
        + """
    stream = ctypes.c_void_p()
    print(cuda.cudaStreamCreate(ctypes.byref(stream)), cuda.cudaStreamDestroy(stream), cuda.cudaStreamSynchronize(stream))
    """,
        options=("--no-predict",),
    )
    assert done.code == 0, done.stderr
    assert done.stdout.splitlines()[0] == "0 0 400", "cudaErrorInvalidResourceHandle"


def test_fork_in_the_middle(run):
    done = python(run, """
        import os, torch
        x = torch.ones(1024, device="cuda") * 2
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        y = x + 1
        torch.cuda.synchronize()
        print("parent went on")
        """)
    assert done.code == 0, done.stderr
    assert "parent went on" in done.stdout
    assert len(done.recordings) == 1


def test_kill_of_a_rank_keeps_what_it_recorded(run):
    done = python(run, """
        import os, signal, torch
        x = torch.ones(1024, device="cuda")
        for _ in range(5000):
            x = x + 1
        os.kill(os.getpid(), signal.SIGKILL)
        """)
    assert done.code == 128 + 9
    assert len(done.recordings) == 1
    listing = subprocess.run([MAYA, "trace", str(done.out), "--format", "csv"], capture_output=True, text=True)
    assert listing.returncode == 0, listing.stderr


def test_sigterm_in_the_middle_of_training(tmp_path):
    out = tmp_path / "r"
    process = subprocess.Popen(
        [
            MAYA,
            "run",
            "--out",
            str(out),
            "--",
            sys.executable,
            str(ROOT / "examples/train_gpt.py"),
            "--layers",
            "2",
            "--batch",
            "1",
            "--steps",
            "1000000",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.time() + 120
    while time.time() < deadline and not list(out.glob("*.maya")):
        time.sleep(0.2)
    time.sleep(3)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 128 + 15
    assert (out / "prediction.json").exists(), stderr


def test_more_ranks_than_devices(run):
    done = run("torchrun", "--nproc-per-node", "2", "examples/train_gpt.py", cluster="h100-sxm")
    assert done.code == 1
    assert "invalid device ordinal" in done.stderr


def test_two_jobs_at_once(tmp_path):
    # Both use torchrun's default port; neither may notice the other.
    words = [str(BIN / "torchrun"), "--nproc-per-node", "2", "tests/workloads/values.py"]
    jobs = [
        subprocess.Popen(
            [MAYA, "run", "--out", str(tmp_path / name), "--", *words],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name in "ab"
    ]
    for job in jobs:
        output, _ = job.communicate(timeout=300)
        assert job.returncode == 0, output
    assert all(len(list((tmp_path / name).glob("rank-*.maya"))) == 2 for name in "ab")


@pytest.mark.skipif(NVCC is None, reason="nvcc is not here")
def test_a_static_runtime_is_named(run, tmp_path):
    program = tmp_path / "static_program"
    source = ROOT / "tests/workloads/cuda_program/heat.cu"
    subprocess.run([NVCC, "-cudart", "static", "-o", str(program), str(source)], check=True)
    done = run(str(program))
    assert done.code != 0
    told = [line for line in done.complaints if "static_program" in line]
    assert len(told) == 1, done.stderr
    assert "-cudart shared" in told[0]
