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


@pytest.mark.parametrize("gpu, capability", [("t4", "7 5"), ("l4", "8 9"), ("b300-sxm", "10 3")])
def test_kernels_run_from_code_of_an_earlier_minor_architecture(run, gpu, capability):
    done = run("python", "-c", SCRIPT, cluster=gpu, options=("--steps", "1"))
    assert f"ran on {capability}" in done.stdout, done.stderr
    coverage = done.prediction["coverage"]
    assert coverage["unknown_kernels"] == [] and coverage["unimplemented_calls"] == []
