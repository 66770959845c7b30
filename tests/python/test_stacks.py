"""`maya run --stacks`: the line and the module of each op, memory by what it holds, and what goes wrong with the file
of places."""

import json
import pathlib
import pickle
import shutil
import subprocess
import sys

import maya
import pytest
from conftest import ROOT

TRAIN = """
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(1024, 4096)
        self.down = nn.Linear(4096, 1024)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))  # the line of the products

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        for layer in self.layers[:2]:
            x = layer(x)
        return checkpoint(self.layers[2], x, use_reentrant=False)

with torch.device("cuda"):
    model = Model()
optimizer = torch.optim.Adam(model.parameters())
for step in range(4):
    loss = model(torch.randn(4096, 1024, device="cuda")).square().mean()  # the loss
    loss.backward()
    optimizer.step()  # the update
    optimizer.zero_grad()
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> maya.Run:
    folder = tmp_path_factory.mktemp("stacks")
    (folder / "train.py").write_text(TRAIN)
    subprocess.run(
        [
            maya.program(),
            "run",
            "--cluster",
            "h100-sxm",
            "--stacks",
            "--out",
            str(folder / "run"),
            "--",
            sys.executable,
            str(folder / "train.py"),
        ],
        check=True,
        timeout=300,
        capture_output=True,
    )
    return maya.open(folder / "run")


def details(run) -> dict:
    return json.loads((pathlib.Path(run) / "prediction.json").read_text())


def number(text: str) -> int:
    return next(i for i, line in enumerate(TRAIN.splitlines(), 1) if text in line)


def test_every_op_has_a_line_and_gradients_go_with_their_forward_op(run):
    code = details(run)["code"]
    assert code["known"] > 0.99
    lines = {l["line"]: l for l in code["lines"]}
    products = lines[number("the line of the products")]
    assert products["source"].startswith("return x + self.down(") and products["function"] == "Block.forward"
    # Two products forward, four backward, and a block that is computed twice.
    assert products["ms"] > products["backward_ms"] > 0.5 * products["ms"]
    assert lines[number("# the update")]["ms"] > 0 and lines[number("# the update")]["backward_ms"] == 0
    assert lines[number("# the loss")]["ms"] > 0
    assert sum(l["critical_ms"] for l in code["lines"]) == pytest.approx(details(run)["step"]["ms"], rel=0.05)


def test_modules_have_their_path_in_the_model(run):
    modules = {m["path"]: m for m in details(run)["code"]["modules"]}
    assert {f"layers.{i}.{name}" for i in range(3) for name in ("up", "down")} <= set(modules)
    plain, recomputed = modules["layers.0.up"], modules["layers.2.up"]
    assert plain["backward_ms"] > 0 and recomputed["ms"] > 1.1 * plain["ms"]


def test_memory_is_shown_by_purpose(run):
    (profile,) = details(run)["memory_at_peak"]
    weights = 3 * (2 * 1024 * 4096 + 1024 + 4096) * 4
    parts = profile["parts"]
    assert profile["detailed"] and parts["parameters"] == pytest.approx(weights, rel=0.02)
    assert parts["optimizer state"] == pytest.approx(2 * weights, rel=0.02)
    assert sum(parts.values()) == details(run)["memory"][0]["peak_bytes"]
    assert any(h["who"].startswith("layers.") for h in profile["largest"])


def test_the_prediction_is_that_of_a_run_without_stacks(run, tmp_path):
    plain = tmp_path / "plain"
    subprocess.run([maya.program(), "run", "--cluster", "h100-sxm", "--out", str(plain), "--", sys.executable,
                    str(pathlib.Path(run).parent / "train.py")], check=True, timeout=300, capture_output=True)
    a, b = details(run), details(plain)
    assert not list(plain.glob("*.places")) and b["code"] is None
    assert [o for o in a["ops"]] == [o for o in b["ops"]]
    assert a["breakdown_ms"]["compute"] == pytest.approx(b["breakdown_ms"]["compute"], rel=0.02)
    assert a["memory"] == b["memory"]


def test_flame_graph_and_snapshot(run, tmp_path):
    words = [maya.program(), "trace", str(pathlib.Path(run)), "--format"]
    stacks = subprocess.run([*words, "collapsed"], check=True, capture_output=True, text=True).stdout.splitlines()
    assert any(line.startswith("backward;") and "Block.forward (train.py:" in line for line in stacks)
    subprocess.run([*words, "speedscope", "--out", str(tmp_path / "flame.json")], check=True)
    flame = json.loads((tmp_path / "flame.json").read_text())
    profile = flame["profiles"][0]
    assert len(profile["samples"]) == len(profile["weights"]) == len(stacks)
    assert max(i for s in profile["samples"] for i in s) < len(flame["shared"]["frames"])
    subprocess.run([*words, "memory", "--out", str(tmp_path)], check=True)
    snapshot = pickle.loads((tmp_path / "memory-rank-0.pickle").read_bytes())
    trace = snapshot["device_traces"][0]
    live = {}
    for event in trace:
        if event["action"] == "alloc":
            assert event["addr"] not in live
            live[event["addr"]] = event["size"]
        else:
            del live[event["addr"]]
    assert sum(live.values()) > 3 * 4 * 2 * 1024 * 4096 * 3  # weights and two moments
    assert any(f["name"] == "Block.forward" for e in trace for f in e["frames"])


def test_torch_reads_the_snapshot(run, tmp_path):
    """PyTorch's own reader of snapshots (the page pytorch.org/memory_viz is its JavaScript twin)."""
    subprocess.run(
        [maya.program(), "trace", str(pathlib.Path(run)), "--format", "memory", "--out", str(tmp_path)], check=True
    )
    code = f"""
import pickle, importlib.util, pathlib, sysconfig
path = pathlib.Path(sysconfig.get_paths()["purelib"]) / "torch" / "cuda" / "_memory_viz.py"
spec = importlib.util.spec_from_file_location("viz", path); viz = importlib.util.module_from_spec(spec); spec.loader.exec_module(viz)
data = pickle.load(open(r"{tmp_path / "memory-rank-0.pickle"}", "rb"))
text = viz.trace(data); page = viz.trace_plot(data)
assert "alloc" in text and "<html" in page.lower() or "<!DOCTYPE" in page, page[:100]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if "No module named" in done.stderr:
        pytest.skip("torch's reader cannot be loaded by itself: " + done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr


def test_a_source_that_changed_is_not_quoted(run, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(pathlib.Path(run).parent, copy)
    script = pathlib.Path(run).parent / "train.py"
    before = script.read_text()
    try:
        script.write_text("# something else\n" * 60)
        page = tmp_path / "page.html"
        subprocess.run(
            [maya.program(), "report", str(copy / "run"), "--out", str(page)], check=True, capture_output=True
        )
        text = page.read_text()
        assert "something else" not in text and '"sources_changed":true' in text
    finally:
        script.write_text(before)


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b"",
        lambda b: b"maya places 2\n" + b,
        lambda b: b[: len(b) // 3],
        lambda b: b.replace(b"p ", b"p 99999999999 "),
        lambda b: b.replace(b"\ns ", b"\ns 4294967295 "),
        lambda b: b.replace(b"\t", b"\t\xff\xfe"),
        lambda b: b + b"b 1 1 1\np 0 0 77777777\n",
        lambda b: bytes(reversed(b)),
        lambda b: b.replace(b"Block", b"</script><script>alert(1)</script>"),
    ],
)
def test_damaged_file_of_places_is_ignored(run, tmp_path, damage):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    (places,) = copy.glob("*.places")
    places.write_bytes(damage(places.read_bytes()))
    page = tmp_path / "page.html"
    done = subprocess.run(
        [maya.program(), "report", str(copy), "--out", str(page)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert text.count("<script") == 1 and "<script>alert" not in text


def test_only_programs_are_quoted(run, tmp_path):
    copy, secret = tmp_path / "run", tmp_path / "secret.txt"
    secret.write_text("the password\n" * 99)
    shutil.copytree(run, copy)
    (places,) = copy.glob("*.places")
    places.write_bytes(
        places.read_bytes().replace(str(pathlib.Path(run).parent / "train.py").encode(), str(secret).encode())
    )
    (copy / "run.toml").touch()
    page = tmp_path / "page.html"
    subprocess.run([maya.program(), "report", str(copy), "--out", str(page)], check=True, capture_output=True)
    assert "secret.txt" in page.read_text() and "the password" not in page.read_text()


def test_run_without_stacks_is_reported(run, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    for places in copy.glob("*.places"):
        places.unlink()
    done = subprocess.run(
        [maya.program(), "trace", str(copy), "--format", "speedscope"], capture_output=True, text=True
    )
    assert done.returncode == 1 and "--stacks" in done.stderr


def test_several_ranks_and_threads(tmp_path):
    """DDP: gradients are reduced by the engine's thread; the reduction has the line that called backward()."""
    out = tmp_path / "run"
    subprocess.run(
        [
            maya.program(),
            "run",
            "--cluster",
            "dgx-h100",
            "--stacks",
            "--out",
            str(out),
            "--",
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--nproc-per-node",
            "2",
            str(ROOT / "examples" / "train_gpt.py"),
            "--layers",
            "2",
        ],
        check=True,
        timeout=300,
        capture_output=True,
    )
    found = json.loads((out / "prediction.json").read_text())
    assert len(list(out.glob("*.places"))) == 2 and found["code"]["known"] > 0.95
    assert any(l["communication_ms"] > 0 for l in found["code"]["lines"])
    (group,) = [c for c in found["communicators"] if c["size"] == 2][:1]
    assert group["calls"][0]["kind"] == "all_reduce" and group["calls"][0]["busbw_gbps"] > 1
    assert any(w["what"].startswith("communication takes no time") and w["gain_ms"] > 0 for w in found["what_if"])


COMPILED = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(512, 2048), nn.Linear(2048, 512)

    def forward(self, x):
        h = torch.relu(self.up(x))  # the first product
        return self.down(h).square().mean()  # the second product

with torch.device("cuda"):
    model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
step = torch.compile(model)
for _ in range(4):
    step(torch.randn(4096, 512, device="cuda")).backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_compiled_code_has_the_lines_of_the_program(tmp_path):
    (tmp_path / "train.py").write_text(COMPILED)
    run = maya.run([sys.executable, str(tmp_path / "train.py")], cluster="h100-sxm", out=tmp_path / "run", stacks=True,
                   quiet=True)
    lines = {entry["line"]: entry for entry in details(run)["code"]["lines"] if entry["file"].endswith("train.py")}
    for text in ("# the first product", "# the second product"):
        at = next(i for i, line in enumerate(COMPILED.splitlines(), 1) if text in line)
        assert lines[at]["ms"] > lines[at]["backward_ms"] > 0, lines
    assert not any("torchinductor" in entry["file"] for entry in details(run)["code"]["lines"])


def test_communication_of_hooks_counts_for_the_call_of_backward(tmp_path):
    """FSDP reduces gradients in Python code that the engine calls in a thread of its own."""
    out = tmp_path / "run"
    subprocess.run([maya.program(), "run", "--cluster", "dgx-h100", "--stacks", "--out", str(out), "--", sys.executable,
                    "-m", "torch.distributed.run", "--nproc-per-node", "2", str(ROOT / "tests/workloads/fsdp2.py")],
                   check=True, timeout=300, capture_output=True)
    code = details(maya.open(out))["code"]
    (line,) = [entry for entry in code["lines"] if ".backward()" in entry["source"]]
    assert line["communication_ms"] > 0
    assert not {"list", "module"} & {module["path"] for module in code["modules"]}
