"""What a real GPU would reject is rejected with the same messages."""

import textwrap

import pytest


def python(run, code, **keywords):
    return run("python", "-c", textwrap.dedent(code), options=("--no-predict",), **keywords)


OLDER = """
    import torch
    major, minor = torch.cuda.get_device_capability()
    built = [int(name[3:].rstrip("af")) for name in torch.cuda.get_arch_list() if name.startswith("sm_")]
    print("code for it:", any(b // 10 == major and b % 10 <= minor for b in built), min(built))
    torch.ones(8, device="cuda")
    """


@pytest.mark.parametrize("gpu, capability", [("p100", "6.0"), ("v100-sxm2-32gb", "7.0")])
def test_a_wheel_without_code_for_the_gpu_finds_no_kernel_image(run, gpu, capability):
    done = python(run, OLDER, cluster=gpu)
    assert "code for it: False" in done.stdout, f"torch has code for {gpu} again: choose an older GPU"
    assert done.code == 1
    assert "no kernel image is available for execution on the device" in done.stderr
    # PyTorch's own warning, from the capability it was told.
    assert f"compute capability (CC) {capability}" in done.stderr


def test_a_wheel_with_code_for_the_gpu_runs(run):
    done = python(run, OLDER, cluster="t4")
    assert "code for it: True" in done.stdout
    assert done.code == 0, done.stderr


FP8 = """
    import torch
    one = torch.ones((), device="cuda")
    a = torch.zeros(64, 64, device="cuda").to(torch.float8_e4m3fn)
    torch._scaled_mm(a, a.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    print("multiplied")
    """


def test_fp8_is_refused_where_tensor_cores_have_none(run):
    done = python(run, FP8, cluster="a100-80gb-sxm")
    assert done.code == 1
    assert "compute capability >= 9.0 or 8.9" in done.stderr, done.stderr


def test_fp8_works_on_h100(run):
    done = python(run, FP8, cluster="h100-sxm")
    assert done.code == 0, done.stderr
    assert "multiplied" in done.stdout
