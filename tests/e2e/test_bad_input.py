"""Surroundings that emulation cannot reach, or that look odd, are said in one clear line."""

import os
import subprocess
import sys
import textwrap

import pytest
from conftest import MAYA


@pytest.fixture
def own_library(tmp_path):
    source, library = tmp_path / "own.c", tmp_path / "libown.so"
    source.write_text(
        '#include <stdio.h>\n__attribute__((constructor)) static void here(void) { puts("own preload"); }\n'
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library


def test_preload_of_the_user_is_kept_and_reported(run, own_library):
    done = run("true", options=("--no-predict",), LD_PRELOAD=str(own_library))
    assert "own preload" in done.stdout
    said = [line for line in done.complaints if "LD_PRELOAD" in line]
    assert len(said) == 1 and str(own_library) in said[0], done.stderr


def test_a_preload_that_conflicts_is_named(maya):
    done = maya("doctor", "--python", sys.executable, LD_PRELOAD="/no/such/libcudart.so.12")
    assert "/no/such/libcudart.so.12; the emulated library of that kind answers before it" in done.stdout


@pytest.mark.parametrize(
    "start", [["env", "-i"], [sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:], env={})"]]
)
def test_a_program_that_clears_the_environment_is_named(run, start):
    done = run(*start, sys.executable, "-c", "print('ran')", options=("--no-predict",))
    assert "ran" in done.stdout
    assert done.code == 0
    assert f"{sys.executable} was started without LD_PRELOAD" in done.complaints[-1], done.stderr


def test_no_proc(tmp_path):
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("no right to unmount /proc here")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$0" run -- true', os.path.realpath(MAYA)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert "cannot read /proc/self/exe" in done.stderr and len(done.stderr.splitlines()) == 1


def test_two_cuda_majors_share_the_device(run):
    code = """
        import ctypes
        old, new = ctypes.CDLL("libcudart.so.12"), ctypes.CDLL("libcudart.so.13")
        wrapper = (ctypes.c_uint64 * 3)()
        for runtime in (old, new):
            runtime.__getattr__("__cudaRegisterFatBinary")(ctypes.byref(wrapper))
        pointer = ctypes.c_void_p()
        print(old.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1024)), new.cudaFree(pointer), new.cudaFree(pointer))
        """
    done = run("python", "-c", textwrap.dedent(code), options=("--no-predict",))
    assert done.code == 0, done.stderr
    assert done.stdout.splitlines()[0] == "0 0 1"
    said = [line for line in done.complaints if "two CUDA majors" in line]
    assert len(said) == 1 and "CUDA 12" in said[0] and "CUDA 13" in said[0], done.stderr
