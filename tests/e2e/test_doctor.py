import json
import pathlib
import sys


def test_no_problem_is_reported(maya):
    done = maya("doctor", "--python", sys.executable, "--json")
    findings = {f["subject"]: f for f in json.loads(done.stdout)["findings"]}
    assert done.returncode == 0, done.stdout
    assert findings["torch"]["state"] == "ok"
    assert "CUDA 13" in findings["torch"]["text"]
    assert findings["device"]["text"].startswith("torch sees 8 × NVIDIA H100")
    assert findings["preload"]["state"] == "ok"


def test_a_python_without_torch(maya, tmp_path):
    done = maya("doctor", "--python", "/usr/bin/python3")
    if "torch      not installed" not in done.stdout:
        return  # a machine whose own Python has torch
    assert done.returncode == 1
    assert "in the way" in done.stdout


def test_the_python_beside_maya_is_checked(maya):
    clean = {"VIRTUAL_ENV": ""}
    done = maya("doctor", "--json", **clean)
    findings = {f["subject"]: f for f in json.loads(done.stdout)["findings"]}
    assert "(beside maya)" in findings["python"]["text"], findings["python"]


def test_active_environment_and_named_command_have_priority(maya, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to("/usr/bin/python3")
    done = maya("doctor", VIRTUAL_ENV=str(tmp_path))
    assert "(the active virtual environment)" in done.stdout
    done = maya(
        "doctor",
        "torchrun",
        "train.py",
        VIRTUAL_ENV=str(tmp_path),
        PATH=f"{pathlib.Path(sys.executable).parent}:/usr/bin:/bin",
    )
    assert "(of torchrun)" in done.stdout


def test_import_outside_maya_run_is_explained(maya):
    done = maya("doctor", "--python", sys.executable)
    if "no NVIDIA package" in done.stdout:
        assert "outside `maya run`" in done.stdout


def test_no_python(maya):
    done = maya("doctor", "--python", "/no/such/python")
    assert done.returncode == 1
    assert "/no/such/python" in done.stdout


def test_missing_libraries(maya, tmp_path):
    done = maya("doctor", "--python", sys.executable, MAYA_LIB_DIR=str(tmp_path))
    assert done.returncode == 1
    assert "libmaya_device.so" in done.stdout
