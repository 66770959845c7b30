"""Small values from the host: computed along, or unknown; never wrong."""

from conftest import ROOT


def test_expressions_over_known_values(run):
    done = run("python", str(ROOT / "tests/e2e/value_expressions.py"), options=("--no-predict",))
    assert done.code == 0, done.stdout + done.stderr
    assert "followed" in done.stdout


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
