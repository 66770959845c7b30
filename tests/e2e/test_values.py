"""Small values from the host are either computed correctly or unknown, never wrong."""

import pytest
from conftest import ROOT


def test_expressions_over_known_values(run):
    done = run("python", str(ROOT / "tests/e2e/value_expressions.py"), options=("--no-predict",))
    assert done.code == 0, done.stdout + done.stderr
    assert "followed" in done.stdout


def test_kernels_compiled_at_run_time_are_known_and_leave_no_cache(run, tmp_path):
    done = run("python", "-c", """
import torch
x = torch.randn(1000, 1000, device="cuda")
for i in range(4):
    torch.cuda.nvtx.range_push("step")
    torch.exp2(x), torch.lgamma(x.t()), x.prod(), torch.special.zeta(x, x)
    torch.cuda.nvtx.range_pop()
torch.cuda.synchronize()
""", options=("--steps", "step"), HOME=str(tmp_path / "home"), PYTORCH_KERNEL_CACHE_PATH=str(tmp_path / "cache"))
    assert done.code == 0, done.stderr
    assert done.prediction["coverage"]["unknown_kernels"] == []
    ops = {op["name"]: op for op in done.prediction["ops"]}
    assert "bytes_read=4000000 bytes_written=4000000" in ops["exp2_kernel_vectorized4_kernel"]["sizes"]
    assert "bytes_read=8000000" in ops["zeta_vectorized4_kernel"]["sizes"]
    assert "inputs=1000000" in ops["reduction_prod_kernel"]["sizes"]
    assert not list(tmp_path.glob("cache/*")) and not list(tmp_path.glob("home/.cache/torch/kernels/*"))


def test_values_that_were_not_computed_pass_checks(run):
    done = run("python", "-c", """
import torch
window = torch.hann_window(64, device="cuda")
there = torch.stft(torch.randn(2, 400, device="cuda"), 64, 16, window=window, return_complex=True)
print(torch.istft(there, 64, 16, window=window).shape)
torch.distributions.Categorical(probs=torch.rand(4, 8, device="cuda").softmax(-1), validate_args=True)
""", options=("--no-predict",))
    assert done.code == 0, done.stderr


def test_random_integers_lie_in_their_range(run):
    done = run("python", "-c", """
import torch
d = "cuda"
x = torch.randint(3, 9, (64,), device=d)
assert 3 <= x.min().item() < x.max().item() < 9, x
assert not torch.equal(x, torch.randint(3, 9, (64,), device=d))
for n in (10, 3000):
    assert sorted(torch.randperm(n, device=d).tolist()) == list(range(n))
torch.manual_seed(5)
first = torch.randint(1000, (8,), device=d, dtype=torch.int32).tolist()
torch.manual_seed(5)
assert first == torch.randint(1000, (8,), device=d, dtype=torch.int32).tolist()
unknown = torch.empty(8, dtype=torch.int64, device=d).random_() > 0
assert unknown.sum().item() == x[:8].masked_select(unknown).numel()
""", options=("--no-predict",))
    assert done.code == 0, done.stdout + done.stderr


def test_probabilities_that_were_not_computed_are_valid_and_uniform(run):
    done = run("python", "-c", """
import torch
scores = torch.randn(6, 3, device="cuda")
for p in (scores.softmax(1), scores.log_softmax(1).exp().softmax(1), scores.half().softmax(1), scores.T.softmax(0).T,
          torch.cat([scores.softmax(1)] * 2), scores.softmax(1).bfloat16().float()):
    assert torch.allclose(p.cpu().float().sum(1), torch.ones(len(p)), atol=5e-3), p
assert (scores.log_softmax(1).cpu() + torch.tensor(3.).log()).abs().max() < 1e-5
assert scores[:, 0].sigmoid().tolist() == [.5] * 6
assert scores.softmax(1)[:, 1].cpu().max() > .3
chosen = scores.softmax(1).topk(1, dim=1)[1].flatten()     # balanced, not always the first
assert sorted(chosen.tolist()) == [0, 0, 1, 1, 2, 2], chosen
""", options=("--no-predict",))
    assert done.code == 0, done.stdout + done.stderr


def test_unknown_values_are_assumed_distinct(run):
    done = run("python", "-c", """
import torch
x = (torch.randn(5, device="cuda") * 9).long()
values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
assert len(values) == 5 and counts.tolist() == [1] * 5 and inverse.max() < 5, (values, inverse, counts)
assert len(torch.unique_consecutive(x)) == 5
assert torch.matrix_exp(torch.randn(4, 8, 8, device="cuda")).shape == (4, 8, 8)
""", options=("--no-predict",))
    assert done.code == 0, done.stdout + done.stderr


def test_values_are_not_forgotten_with_their_neighbours_in_memory(run):
    """A loop of text generation: whether all sequences are finished is known, whatever is sampled beside it."""
    done = run("python", "-c", """
import torch
unfinished = torch.ones(4, dtype=torch.long, device="cuda")
ids = torch.randint(0, 32000, (4, 512)).cuda()
for n in range(1, 40):
    scores = torch.randn(4, 32000, device="cuda")
    scores = scores.masked_fill(scores < torch.topk(scores, 50)[0][..., -1, None], -float("inf"))
    token = torch.multinomial(torch.softmax(scores, -1), 1).squeeze(1)
    ids = torch.cat([ids, token[:, None]], -1)
    unfinished = unfinished & ~torch.full((4,), n >= 20, device="cuda", dtype=torch.bool)
    assert bool(unfinished.max() == 0) == (n >= 20), n
""", options=("--no-predict",))
    assert done.code == 0, done.stderr


def test_small_triton_kernels_are_run_on_known_values(run):
    done = run("python", str(ROOT / "tests/e2e/triton_values.py"), options=("--no-predict",))
    assert done.code == 0, done.stdout + done.stderr
    assert "followed" in done.stdout


def test_a_launch_that_meets_known_values_is_read_once(run, tmp_path):
    """What a kernel of floats writes is unknown. Finding that out takes milliseconds, and a loop launches it for
    ever."""
    (tmp_path / "launches.py").write_text("""
import time, torch, triton, triton.language as tl

@triton.jit
def scaled(x, out, n, BLOCK: tl.constexpr):
    for at in range(0, 16):
        i = (tl.program_id(0) * 16 + at) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) * 0.5, mask=i < n)

def seconds(x, times):
    out = torch.empty_like(x)
    begin = time.thread_time()
    for _ in range(times):
        scaled[(16,)](x, out, x.numel(), BLOCK=1024)
    return time.thread_time() - begin

known = torch.arange(1 << 18, dtype=torch.int32).float()[:200000].to("cuda")  # copied from the host
unknown = torch.rand(200000, device="cuda")
seconds(known, 1), seconds(unknown, 1)
ratio = min(seconds(known, 100) / seconds(unknown, 100) for _ in range(3))
print("ratio", ratio)
assert ratio < 5, ratio
""")
    done = run("python", str(tmp_path / "launches.py"), options=("--no-predict",))
    assert done.code == 0, done.stdout + done.stderr


def test_a_rank_sends_to_itself_too(run, tmp_path):
    """An all-to-all of uneven parts is a group of messages, one of them from a rank to itself."""
    (tmp_path / "exchange.py").write_text("""
import os, torch, torch.distributed as dist
rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
parts = [[1, 2], [3, 1]]  # from, to
for turn in range(2):
    sent = (torch.arange(sum(parts[rank])) + 10 * rank + 100 * turn).cuda()
    received = torch.empty(parts[0][rank] + parts[1][rank], dtype=torch.long, device="cuda")
    dist.all_to_all_single(received, sent, [parts[0][rank], parts[1][rank]], parts[rank])
    os.write(1, f"{rank}: {received.tolist()}\\n".encode())
dist.destroy_process_group()
""")
    done = run("torchrun", "--nproc-per-node", "2", str(tmp_path / "exchange.py"), options=("--no-predict",),
               MAYA_PEER_TIMEOUT="20")
    assert done.code == 0, done.stderr
    assert {"0: [0, 10, 11, 12]", "1: [1, 2, 13]", "0: [100, 110, 111, 112]", "1: [101, 102, 113]"} <= set(
        done.stdout.splitlines())


def test_graphs_compute_values_at_launch_not_at_capture(run):
    done = run("python", "-c", """
import torch
count = torch.zeros(4, dtype=torch.int32, device="cuda")
step = torch.tensor([1, 2, 3, 4], dtype=torch.int32, device="cuda")
kept = torch.zeros(4, dtype=torch.int32, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    count += step
    kept.copy_(count)
    count.clone().zero_()
assert count.tolist() == [0] * 4, count
graph.replay()
assert count.tolist() == kept.tolist() == [1, 2, 3, 4], (count, kept)
step.copy_(torch.tensor([10, 0, 0, 0], dtype=torch.int32))
graph.replay()
graph.replay()
assert count.tolist() == kept.tolist() == [21, 2, 3, 4], (count, kept)
""", options=("--no-predict",))
    assert done.code == 0, done.stdout + done.stderr


PREPARES = """
import os, sys, time, torch, torch.distributed as dist
rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
if rank == 0:
    time.sleep(3)
    open(sys.argv[1], "w").write("prepared")
dist.barrier()
os.write(1, f"rank {rank} finds the file: {os.path.exists(sys.argv[1])}\\n".encode())
dist.destroy_process_group()
"""


@pytest.mark.parametrize("back_end", ["1", "0"])
def test_a_barrier_orders_what_ranks_do_on_the_host(run, tmp_path, back_end):
    """One rank prepares a file, the others open it behind the barrier."""
    script = tmp_path / "prepares.py"
    script.write_text(PREPARES)
    done = run("torchrun", "--nproc-per-node", "2", str(script), str(tmp_path / "file"), cluster="dgx-h100",
               TORCH_DIST_USE_NCCL2=back_end)
    assert done.code == 0, done.stderr
    for rank in range(2):
        assert f"rank {rank} finds the file: True" in done.stdout


PACKED = """
import sys, torch
heads, size, tokens = 8, 64, 4096
q = torch.randn(tokens, heads, size, device="cuda", dtype=torch.bfloat16)
starts = torch.tensor([0, 1000, 1100, 3000, 4096], dtype=torch.int32, device="cuda")
if sys.argv[1] == "unknown":
    starts = (torch.randn(5, device="cuda") * 4096).int()
for _ in range(3):
    torch.ops.aten._flash_attention_forward(q, q, q, starts, starts, 1900, 1900, 0.0, True, False)
torch.cuda.synchronize()
"""


def test_lengths_of_packed_sequences_are_read_or_said_to_be_assumed(run, tmp_path):
    script = tmp_path / "packed.py"
    script.write_text(PACKED)
    sizes = {}
    for starts in ("known", "unknown"):
        done = run("python", str(script), starts, options=("--steps", "1"))
        assert done.code == 0, done.stderr
        sizes[starts] = next(op["sizes"] for op in done.prediction["ops"] if op["kind"] == "attention")
        said = [a["what"] for a in done.prediction["assumptions"] if "unknown lengths" in a["what"]]
        assert bool(said) == (starts == "unknown")
    # The sum of the squares counts: 1000² + 100² + 1900² + 1096² = 4 · 1206².
    assert "seq_q=1206" in sizes["known"]
    assert "seq_q=1024" in sizes["unknown"]  # 4096 tokens in four
