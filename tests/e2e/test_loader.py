"""Every way of opening NVIDIA's libraries gives the emulated ones, and dlopen of other libraries is not changed."""

import os
import re
import subprocess
import sys
import textwrap

from conftest import ROOT

BUILD = ROOT / "build"

OPENED = """
    import ctypes
    library = ctypes.CDLL({path!r})
    count = ctypes.c_int()
    print(library.cudaGetDeviceCount(ctypes.byref(count)), count.value)
    """


def test_an_absolute_path_with_a_full_version_is_ours(run):
    code = textwrap.dedent(OPENED.format(path="/opt/nvidia/cuda_runtime/lib/libcudart.so.12.8.90"))
    done = run("python", "-c", code, options=("--no-predict",))
    assert done.stdout.splitlines()[0] == "0 8", done.stderr


def test_a_library_that_is_not_ours_is_still_not_found(run):
    code = textwrap.dedent(OPENED.format(path="/opt/nvidia/lib/libcudart.so.11"))
    done = run("python", "-c", code, options=("--no-predict",))
    assert done.code == 1
    assert "/opt/nvidia/lib/libcudart.so.11" in done.stderr


def test_dlopen_still_searches_the_runpath_of_its_caller(run, tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "neighbour.c").write_text("int answer(void) { return 42; }")
    (tmp_path / "far" / "opener.c").write_text("""
        #include <dlfcn.h>
        int ask(void) {
          void* library = dlopen("libneighbour.so", RTLD_NOW);
          return library ? ((int (*)(void))dlsym(library, "answer"))() : -1;
        }""")
    for name, flags in (("neighbour", []), ("opener", ["-Wl,-rpath,$ORIGIN"])):
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(tmp_path / "far" / f"lib{name}.so"),
                        str(tmp_path / "far" / f"{name}.c"), *flags], check=True)
    done = run("python", "-c", f"import ctypes; print(ctypes.CDLL('{tmp_path}/far/libopener.so').ask())",
               options=("--no-predict",))
    assert done.stdout.splitlines()[0] == "42", done.stderr


def test_preloaded_libraries_need_only_the_c_and_cxx_runtime():
    """They enter the user's process: a library of this system's packages may be absent or another version there."""
    runtime = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1"}
    runtime |= {"libstdc++.so.6", "ld-linux-x86-64.so.2"}
    libraries = [f for f in sorted((BUILD / "lib" / "maya").iterdir()) if ".so" in f.name]
    assert "libmaya_device.so" in {f.name for f in libraries}
    ours = {f.name for f in libraries}
    for program in [*libraries, BUILD / "bin" / "maya", BUILD / "libexec" / "nvidia-smi"]:
        dynamic = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic))
        assert needed <= runtime | ours, (program.name, needed - runtime - ours)


def test_libraries_that_are_found_and_not_preloaded_do_no_harm():
    """`import torch` with our folder in LD_LIBRARY_PATH: the C library is in front of ours then."""
    code = f"import ctypes; ctypes.CDLL('libcudart.so.13'); print('loaded from', {str(BUILD)!r})"
    folder = str(BUILD / "lib/maya")
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "LD_LIBRARY_PATH": folder},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_only_the_version_that_the_program_is_linked_with_is_found_by_name(run):
    """cuDNN's front end tries libcudart.so.12 and libcudart.so.13, whose structures differ."""
    code = textwrap.dedent("""
        import ctypes, torch
        for major in (12, 13):
            try:
                ctypes.CDLL(f"libcudart.so.{major}")
                print("found", major)
            except OSError:
                print("no", major)
        print("torch", torch.version.cuda.split(".")[0])
        """)
    done = run("python", "-c", code, options=("--no-predict",))
    lines = done.stdout.splitlines()
    mine = next(line.split()[1] for line in lines if line.startswith("torch"))
    other = {"12": "13", "13": "12"}[mine]
    assert f"found {mine}" in lines and f"no {other}" in lines, done.stdout + done.stderr
