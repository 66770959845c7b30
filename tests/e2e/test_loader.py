"""Every way of opening NVIDIA's libraries gives the emulated ones, and dlopen of other libraries is not changed."""

import subprocess
import textwrap

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
