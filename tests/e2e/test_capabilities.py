"""GPUs that run code built for an earlier minor architecture: libraries choose by the code's version, not the GPU's."""

import pytest

SCRIPT = """
import torch
d = "cuda"
for shape in ((1, 1000), (5000,), (64, 512)):
    x = torch.ones(shape, device=d)
    x.cumsum(-1), x.sort(-1), x.topk(3, -1), x.unique(), torch.histc(x.float(), 10), x.nonzero()
w = torch.randn(64, 64, device=d, requires_grad=True)
torch.nn.functional.cross_entropy(w @ w, torch.arange(64, device=d)).backward()
torch.cuda.synchronize()
print("ran on", *torch.cuda.get_device_capability())
"""


FABRIC = """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
device = ctypes.c_void_p()
nvml.nvmlInit_v2()
nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))
class Info(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("cluster", ctypes.c_ubyte * 16), ("status", ctypes.c_uint),
                ("clique", ctypes.c_uint), ("state", ctypes.c_ubyte), ("health", ctypes.c_uint)]
info = Info(2 << 24 | ctypes.sizeof(Info))
print("fabric", nvml.nvmlDeviceGetGpuFabricInfoV(device, ctypes.byref(info)), info.state)
"""


# PyTorch 2.11 to 2.13 end a program with expandable segments if the call fails.
@pytest.mark.parametrize("cluster, state", [("a100-80gb-sxm", 0), ("h100-sxm", 0), ("dgx-h100", 3)])
def test_a_gpu_without_a_fabric_says_so(run, cluster, state):
    done = run("python", "-c", FABRIC, cluster=cluster, options=("--no-predict",))
    assert f"fabric 0 {state}" in done.stdout, done.stderr


@pytest.mark.parametrize("gpu, capability", [("t4", "7 5"), ("l4", "8 9"), ("b300-sxm", "10 3")])
def test_kernels_run_from_code_of_an_earlier_minor_architecture(run, gpu, capability):
    done = run("python", "-c", SCRIPT, cluster=gpu, options=("--steps", "1"))
    assert f"ran on {capability}" in done.stdout, done.stderr
    coverage = done.prediction["coverage"]
    assert coverage["unknown_kernels"] == [] and coverage["unimplemented_calls"] == []
