"""A Triton kernel that is tuned at its first use, then used; no training."""

import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((1024, 4), (2048, 8), (4096, 8))], key=["n"])
@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


x = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
w = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
y = torch.empty_like(x)
for _ in range(20):
    z = x @ w
    scale[lambda meta: (triton.cdiv(z.numel(), meta["BLOCK"]),)](z, y, z.numel())
    y = torch.softmax(y, 1)
torch.cuda.synchronize()
print("done")
