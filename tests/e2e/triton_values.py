"""Kernels as serving engines write them: lengths, positions and counts, computed in Triton and read back."""
import torch
import triton
import triton.language as tl


@triton.jit
def starts(lengths, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    length = tl.load(lengths + i, mask=i < n, other=0)
    tl.store(out + 1 + i, tl.cumsum(length, 0), mask=i < n)
    tl.store(out, 0)


@triton.jit
def gather(table, rows, begin, out, width, BLOCK: tl.constexpr):
    """Tokens of each request, one behind the other."""
    request = tl.program_id(0)
    row = tl.load(rows + request)
    first = tl.load(begin + request)
    last = tl.load(begin + request + 1)
    for at in range(0, last - first, BLOCK):
        i = at + tl.arange(0, BLOCK)
        token = tl.load(table + row * width + i, mask=i < last - first)
        tl.store(out + first + i, token, mask=i < last - first)


@triton.jit
def count(tokens, wanted, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    token = tl.load(tokens + i, mask=i < n, other=-1)
    tl.store(out, tl.sum((token == wanted).to(tl.int32), 0))


@triton.jit
def histogram(tokens, bins, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    token = tl.load(tokens + i, mask=i < n, other=0)
    tl.atomic_add(bins + token, 1, mask=i < n)


@triton.jit
def take(host, device, n, BLOCK: tl.constexpr):
    """From the host's memory, and back there doubled."""
    i = tl.arange(0, BLOCK)
    x = tl.load(host + i, mask=i < n)
    tl.store(device + i, x, mask=i < n)
    tl.store(host + n + i, 2 * x, mask=i < n)


@triton.jit
def scaled(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 0.5, mask=i < n)


d = "cuda"
lengths = torch.tensor([3, 1, 4, 1, 5], dtype=torch.int32, device=d)
begin = torch.empty(6, dtype=torch.int32, device=d)
starts[(1,)](lengths, begin, 5, BLOCK=256)
assert begin.tolist() == [0, 3, 4, 8, 9, 14], begin

table = torch.arange(60).view(10, 6).to(d)
rows = torch.tensor([7, 0, 2, 9, 4], dtype=torch.int32, device=d)
out = torch.empty(14, dtype=torch.int64, device=d)
gather[(5,)](table, rows, begin, out, 6, BLOCK=4)
assert out.tolist() == [42, 43, 44, 0, 12, 13, 14, 15, 54, 24, 25, 26, 27, 28], out

found = torch.empty(1, dtype=torch.int32, device=d)
count[(1,)](out, 13, found, 14, BLOCK=128)
assert found.item() == 1

bins = torch.zeros(60, dtype=torch.int32, device=d)
histogram[(4,)](out % 5, bins, 14, BLOCK=4)
assert bins.tolist()[:5] == [3, 1, 3, 3, 4], bins

# Changed on the host, seen by the next launch; unknown inputs stay unknown.
lengths.copy_(torch.tensor([1, 1, 1, 1, 1], dtype=torch.int32))
starts[(1,)](lengths, begin, 5, BLOCK=256)
assert begin.tolist() == [0, 1, 2, 3, 4, 5], begin
lengths.copy_(torch.randn(5, device=d) * 9)
starts[(1,)](lengths, begin, 5, BLOCK=256)
assert begin.tolist()[1:] == [0] * 5, begin      # unknown reads as zero

class View:
    """Pinned memory of the host under the address kernels see it at."""
    def __init__(self, tensor):
        self.tensor, self.dtype = tensor, tensor.dtype

    def data_ptr(self):
        return self.tensor.data_ptr()


host = torch.zeros(8, dtype=torch.int32).pin_memory()
host[:4] = torch.tensor([9, 8, 7, 6], dtype=torch.int32)
device = torch.empty(4, dtype=torch.int32, device=d)
take[(1,)](View(host), device, 4, BLOCK=16)
torch.cuda.synchronize()
assert device.tolist() == [9, 8, 7, 6], device
assert host.tolist() == [9, 8, 7, 6, 18, 16, 14, 12], host
host[0] = 1
take[(1,)](View(host), device, 4, BLOCK=16)
torch.cuda.synchronize()
assert device.tolist() == [1, 8, 7, 6] and host[4] == 2, (device, host)

x = torch.ones(4, device=d)
scaled[(1,)](x, x, 4, BLOCK=16)
assert x.tolist() == [0, 0, 0, 0], x             # floating-point results are not computed
print("followed")
