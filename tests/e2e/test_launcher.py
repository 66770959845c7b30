"""`maya run` with commands good and bad: one clear line for each fault, exit codes and output passing through."""

import signal
import subprocess
import sys
import time

import pytest
from conftest import MAYA

TOUCH = "import torch; x = torch.ones(1024, device='cuda'); torch.cuda.synchronize()"


def test_command_not_found(run):
    done = run("no-such-program")
    assert done.code == 1
    assert done.complaints == ["maya: command not found: 'no-such-program' is not on PATH"]


def test_no_command(maya):
    done = maya("run", "--cluster", "dgx-h100")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_unknown_option(maya):
    done = maya("run", "--clutser", "dgx-h100", "--", "true")
    assert done.returncode == 2
    assert "--clutser" in done.stderr


def test_unknown_cluster_gets_a_suggestion(run):
    done = run("true", cluster="dgx-h10")
    assert done.code == 1
    assert len(done.complaints) == 1
    assert "dgx-h100" in done.complaints[0]


def test_code_and_output_pass_through(run):
    done = run("sh", "-c", "echo to stdout; echo to stderr >&2; exit 7")
    assert done.code == 7
    assert "to stdout" in done.stdout
    assert "to stderr" in done.stderr


def test_death_by_signal(run):
    assert run("sh", "-c", "kill -9 $$").code == 128 + 9


def test_out_that_cannot_be_written(run, tmp_path):
    (tmp_path / "file").write_text("")
    done = run("true", out=tmp_path / "file" / "run")
    assert done.code == 1
    assert "--out" in done.complaints[0]


def test_directory_with_other_files_is_not_touched(run, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    done = run("true", out=tmp_path)
    assert done.code == 1
    assert "not empty" in done.complaints[0]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["thesis.tex"]


def test_missing_libraries(run, tmp_path):
    done = run("true", MAYA_LIB_DIR=str(tmp_path / "nowhere"))
    assert done.code == 1
    assert "nowhere" in done.complaints[0]


def test_command_without_cuda_is_reported(run):
    done = run("python", "-c", "print(1 + 1)")
    assert done.code == 0, "the command's own"
    assert done.stdout == "2\n"
    assert len(done.complaints) == 1
    assert "nothing was recorded" in done.complaints[0]
    assert not done.recordings


def test_torch_without_cuda_is_named(run, tmp_path):
    # A folder in front of the real torch that looks like a CPU build.
    (tmp_path / "site" / "torch").mkdir(parents=True)
    (tmp_path / "site" / "torch" / "__init__.py").write_text("")
    (tmp_path / "site" / "torch" / "version.py").write_text("__version__ = '2.15.0+cpu'\ncuda = None\n")
    done = run("python", "-c", "import torch", PYTHONPATH=str(tmp_path / "site"))
    assert done.code == 0
    assert "2.15.0+cpu" in done.complaints[0]
    assert "without CUDA" in done.complaints[0]


def test_a_child_that_never_touches_the_device_leaves_no_recording(run):
    done = run("sh", "-c", f'{sys.executable} -c "print(1)"; {sys.executable} -c "{TOUCH}"')
    assert done.code == 0, done.stderr
    assert [p.name for p in done.recordings] == ["rank-0.maya"]


@pytest.mark.parametrize("rank, local, size", [
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
    ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
])
def test_rank_is_detected_under_each_launcher(run, rank, local, size):
    one = f'{rank}=%d {local}=%d {size}=2 {sys.executable} -c "{TOUCH}"'
    done = run("sh", "-c", " & ".join(one % (i, i) for i in range(2)) + " & wait", options=("--no-predict",))
    assert done.code == 0, done.stderr
    assert [p.name for p in done.recordings] == ["rank-0.maya", "rank-1.maya"]


def test_nvidia_smi_answers_for_the_cluster(run):
    done = run("nvidia-smi", "--query-gpu=name,compute_cap", "--format=csv,noheader", cluster="dgx-a100")
    assert done.stdout.splitlines() == ["NVIDIA A100-SXM4-80GB, 8.0"] * 8


def test_nvidia_smi_answers_queries_of_monitors(run):
    fields = ("index,uuid,utilization.gpu,memory.total,memory.used,memory.free,driver_version,name,gpu_serial,"
              "display_active,display_mode,temperature.gpu,clocks_throttle_reasons.active,timestamp")
    done = run("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits", cluster="a100-80gb-sxm")
    cells = done.stdout.strip().split(", ")
    assert len(cells) == fields.count(",") + 1
    assert float(cells[11]) > 0
    assert "not a valid field" in run("nvidia-smi", "--query-gpu=no.such", "--format=csv").stdout


def test_nvidia_smi_and_torch_agree(run):
    done = run(
        "sh",
        "-c",
        f"nvidia-smi -L; {sys.executable} -c 'import torch; torch.zeros(1, device=0); p = "
        "torch.cuda.get_device_properties(3); print(p.uuid, p.name)'",
    )
    assert done.code == 0, done.stderr
    lines = done.stdout.splitlines()
    uuid, name = lines[8].split(maxsplit=1)
    assert lines[3] == f"GPU 3: {name} (UUID: GPU-{uuid})"


def test_visible_devices(run):
    ask = "import torch; torch.zeros(1, device='cuda'); print(torch.cuda.device_count())"
    assert run("python", "-c", ask, CUDA_VISIBLE_DEVICES="2,5").stdout.startswith("2\n")
    assert run("python", "-c", ask, cluster="a100-80gb-sxm").stdout.startswith("1\n")


def test_device_index_out_of_range(run):
    done = run("python", "-c", "import torch; torch.zeros(1, device='cuda:8')")
    assert done.code == 1
    assert "invalid device ordinal" in done.stderr


def test_sigterm_reaches_the_command(tmp_path):
    script = "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.1; done"
    process = subprocess.Popen([MAYA, "run", "--out", str(tmp_path / "r"), "--", "sh", "-c", script],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    stdout, _ = process.communicate(timeout=30)
    assert "bye" in stdout
    assert process.returncode == 5


def test_the_command_outlives_a_killed_launcher(tmp_path):
    marker = tmp_path / "marker"
    process = subprocess.Popen(
        [MAYA, "run", "--out", str(tmp_path / "r"), "--", "sh", "-c", f"echo ready; sleep 1; touch {marker}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.wait()
    for _ in range(100):
        if marker.exists():
            return
        time.sleep(0.1)
    pytest.fail("the command was gone with its launcher")


def test_two_runs_do_not_share_a_directory(tmp_path):
    first = subprocess.Popen([MAYA, "run", "--out", str(tmp_path / "r"), "--", "sh", "-c", "echo ready; sleep 3"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert first.stdout.readline() == "ready\n"
    second = subprocess.run([MAYA, "run", "--out", str(tmp_path / "r"), "--", "true"], capture_output=True, text=True)
    assert second.returncode == 1
    assert "still going" in second.stderr
    first.wait()


def test_nodes_run_in_parallel(run):
    done = run("sh", "-c", "echo node $NODE_RANK", options=("--nodes", "3"))
    assert sorted(done.stdout.splitlines()) == ["node 0", "node 1", "node 2"]


def test_too_few_nodes(run):
    done = run("torchrun", "--nnodes", "4", "x.py", cluster="dgx-h100:2")
    assert done.code == 1
    assert "4 nodes" in done.complaints[0]


def test_a_users_own_preload_is_kept(run):
    done = run("sh", "-c", "echo $LD_PRELOAD", LD_PRELOAD="/lib/x86_64-linux-gnu/libdl.so.2")
    assert done.stdout.strip().endswith(":/lib/x86_64-linux-gnu/libdl.so.2")


def test_a_script_without_execute_permission(run, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("print(1)")
    done = run(str(script))
    assert done.code == 1
    assert f"did you mean `python {script}`?" in done.complaints[0]
