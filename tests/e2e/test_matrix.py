"""The compatibility matrix: what matrix.toml may say, what is done again, and what the page tells."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/workloads")]

from compat import description, page, stream, trial, venv  # noqa: E402
from workloads import WORKLOADS  # noqa: E402

KNOWN = {"gpt", "fsdp2", "resnet"}


@pytest.fixture
def read(tmp_path):
    def call(text, known=KNOWN):
        path = tmp_path / "matrix.toml"
        path.write_text(text)
        return description.read(path, known)

    return call


def test_matrix_file_is_valid():
    environments = description.read(ROOT / "matrix.toml", {w.name for w in WORKLOADS})
    assert {"torch-2.1.2", "torch-2.15.0", "torch-2.15.0-nvidia"} <= {e.name for e in environments}


def test_a_torch_release_is_one_line(read):
    environments = read("""
        [sets]
        torch = ["gpt", "fsdp2"]
        [torch]
        python = "3.11"
        [torch.releases]
        "2.1.2" = { with = ["numpy<2"], without = ["fsdp2"] }
        "9.0.0" = {}
        """)
    assert [(e.name, e.packages, e.workloads) for e in environments] == [
        ("torch-2.1.2", ["torch==2.1.2", "torchvision", "numpy<2"], ["gpt"]),
        ("torch-9.0.0", ["torch==9.0.0", "torchvision"], ["gpt", "fsdp2"])]


@pytest.mark.parametrize("text, word", [
    ('[[environment]]\nname = "a"\npackages = []\nworkloads = ["nonsense"]', "nonsense"),
    ('[[environment]]\nname = "a"\npackages = []\nworkloads = ["@none"]', "@none"),
    ('[[environment]]\nname = "a"\npackages = []\nworkloads = []\ncolour = 1', "colour"),
    ('[[environment]]\nname = "a"\npackages = []\nworkloads = []\nsame_as = "b"', "b"),
    ('[[environment]]\nname = "a"\npackages = []\nworkloads = []\n' * 2, "two environments"),
    ("[[environment", "matrix.toml"),
])
def test_errors_name_the_mistake(read, text, word):
    with pytest.raises(description.Mistake, match=word):
        read(text)


def test_without_nvidia_means_without_its_libraries_only():
    left_out = [
        n
        for n in (
            "nvidia-cublas-cu12==12.1",
            "nvidia-nccl-cu13==2",
            "cuda-toolkit==13.2",
            "cuda-bindings==13",
            "nvidia-ml-py==13",
            "torch==2.1.2",
        )
        if venv.NVIDIA.match(n)
    ]
    assert left_out == ["nvidia-cublas-cu12==12.1", "nvidia-nccl-cu13==2", "cuda-toolkit==13.2"]


def test_result_is_kept_while_its_inputs_do_not_change():
    environment = description.Environment("a", ["torch==1"], ["ddp-4"])
    workload = next(w for w in WORKLOADS if w.name == "ddp-4")
    same = trial.inputs(venv.Venvs.inputs(environment), environment, workload)
    assert trial.inputs(venv.Venvs.inputs(environment), environment, workload) == same
    environment.note = "a remark changes nothing"
    assert trial.inputs(venv.Venvs.inputs(environment), environment, workload) == same
    environment.variables = {"X": "1"}
    assert trial.inputs(venv.Venvs.inputs(environment), environment, workload) != same
    environment.variables, environment.packages = {}, ["torch==2"]
    assert trial.inputs(venv.Venvs.inputs(environment), environment, workload) != same


def result(**changes):
    good = {
        "state": "ran",
        "words": "",
        "unimplemented": [],
        "unknown": 0.001,
        "step_ms": 12.5,
        "private_bytes": 400 << 20,
        "host_seconds": 8.0,
        "seconds": 9.0,
    }
    return {"h100": {**good, **changes}, "a100": {"state": "ran", "step_ms": 20.0}, "a100_by": "predict"}


@pytest.mark.parametrize(
    "changes, clean",
    [
        ({}, True),
        ({"unknown": 0.03}, False),
        ({"unimplemented": ["cudaX"]}, False),
        ({"state": "failed", "words": "exit code 1"}, False),
    ],
)
def test_definition_of_clean(changes, clean):
    assert page.healthy(result(**changes)) == clean


def test_page_reports_missing_data():
    environment = description.Environment("pack", ["torch==1", "pack"], ["gpt", "fsdp2", "resnet"],
                                          obstacles={"fsdp2": "pack wants a compiler that is not free"})
    state = {"versions": {"torch": "1", "Pack": "3.4"},
             "results": {"gpt": result(unimplemented=["cudaX"]), "fsdp2": result(state="failed", words="exit code 1")}}
    text = page.page([environment], {"pack": state}, mixed=False)
    assert "torch 1, pack 3.4" in text
    assert "| gpt | yes | cudaX | 0.1 % | ≈ 20.0 ms | 12.5 ms | 400 MiB | 8 s |" in text
    assert "| fsdp2 | **no**: pack wants a compiler that is not free |" in text
    assert "| resnet | not tried |" in text
    assert "| 0 of 3 | gpt, fsdp2, resnet (not tried) |" in text
    text = page.page([environment], {}, mixed=False)
    assert "| pack | 3.11 | not tried | fsdp2: pack wants a compiler that is not free |" in text


HEADER = "ranks,stream,step,record,issue_us,start_us,duration_us,kind,name,sizes,collective\n"


def fake_maya(tmp_path):
    program = tmp_path / "maya"
    program.write_text('#!/bin/sh\ncat "$2/ops.csv"\n')
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    "other, same, words",
    [
        ("0,0,,5,9.0,9.1,2.0,gemm,g,m=1,\n0,0,,4,1.0,1.1,2.0,fill,f,bytes=4,\n", True, "2 ops the same"),
        (
            "0,0,,4,1.0,1.1,2.0,fill,f,bytes=4,\n0,0,,5,1.0,1.1,2.0,gemm,g,m=2,\n",
            False,
            "op 1 of 2 differs in sizes: m=1 | m=2",
        ),
        ("0,0,,4,1.0,1.1,2.0,fill,f,bytes=4,\n", False, "2 ops and 1"),
    ],
)
def test_op_streams_are_compared_without_their_times(tmp_path, other, same, words):
    for name, rows in (("a", "0,0,,1,0.0,0.1,1.0,fill,f,bytes=4,\n0,0,,2,0.0,0.1,1.0,gemm,g,m=1,\n"), ("b", other)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ops.csv").write_text(HEADER + rows)
    assert stream.compare(tmp_path / "a", tmp_path / "b", fake_maya(tmp_path)) == (same, words)
