"""Small values from the host: computed along, or unknown; never wrong."""

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


def test_numbers_nobody_computed_pass_checks(run):
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


def test_probabilities_nobody_computed_are_valid_and_choose_nothing(run):
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


def test_unknown_numbers_differ(run):
    done = run("python", "-c", """
import torch
x = (torch.randn(5, device="cuda") * 9).long()
values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
assert len(values) == 5 and counts.tolist() == [1] * 5 and inverse.max() < 5, (values, inverse, counts)
assert len(torch.unique_consecutive(x)) == 5
assert torch.matrix_exp(torch.randn(4, 8, 8, device="cuda")).shape == (4, 8, 8)
""", options=("--no-predict",))
    assert done.code == 0, done.stdout + done.stderr


def test_small_triton_kernels_are_run_on_known_values(run):
    done = run("python", str(ROOT / "tests/e2e/triton_values.py"), options=("--no-predict",))
    assert done.code == 0, done.stdout + done.stderr
    assert "followed" in done.stdout


def test_graphs_compute_at_each_launch_and_not_at_capture(run):
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
