"""Every file that the Python package reads is damaged in many ways: the answer is a result or a MayaError.

The program's own readers are fuzzed (fuzz/); these are the readers that are written in Python: profiles for `maya
calibrate`, predictions, and the directory of a search. The damages are a fixed sequence.
"""

import gzip
import json
import os
import pathlib
import random
import sqlite3

import pytest
from maya import api, calibrate
from maya.installation import MayaError
from maya.visible import visible, visible_lines

ROOT = pathlib.Path(__file__).resolve().parents[2]
COUNT = 150

TRACE = {
    "deviceProperties": [{"name": "NVIDIA H100 80GB HBM3"}],
    "traceEvents": [
        {"cat": "cpu_op", "name": "aten::mm", "args": {"External id": 1, "Input Dims": [[8, 16], [16, 4]],
                                                       "Input type": ["float", "float"]}},
        {"cat": "kernel", "name": "gemm", "dur": 12.5, "args": {"External id": 1, "grid": [1, 1, 1]}},
        {"cat": "kernel", "name": "vectorized_elementwise_kernel<4>", "dur": 3, "args": {"grid": [4, 1, 1],
                                                                                        "block": [128, 1, 1]}},
    ],
}
VALUES = [None, True, -1, 2**70, 1e308, float("nan"), "", "\x1b[2J", [], [[]], {}, {"a": 1}, [[[[]]]]]


def damaged_json(value, dice):
    """The value with one part replaced by something of another type."""
    if isinstance(value, dict) and value and dice.random() < 0.85:
        key = dice.choice(list(value))
        return {**value, key: damaged_json(value[key], dice)}
    if isinstance(value, list) and value and dice.random() < 0.85:
        at = dice.randrange(len(value))
        return [*value[:at], damaged_json(value[at], dice), *value[at + 1 :]]
    return dice.choice(VALUES)


def damaged_bytes(data, dice):
    data = bytearray(data)
    for _ in range(dice.randint(1, 6)):
        at = dice.randrange(len(data))
        data[at : at + dice.choice((0, 1, 1, 8))] = bytes(dice.choices(range(256), k=dice.choice((0, 1, 1, 8))))
    return bytes(data[: dice.randrange(len(data) + 1)] if dice.random() < 0.2 else data)


def read_or_error(reader, path):
    try:
        reader(path)
    except MayaError as problem:
        assert str(problem)


def test_profiles_of_torch(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(TRACE))
    assert calibrate.read(path).kernels == 2
    for seed in range(COUNT):
        dice = random.Random(seed)
        whole = damaged_json(TRACE, dice)
        path.write_bytes(json.dumps(whole).encode() if seed % 2 else damaged_bytes(json.dumps(TRACE).encode(), dice))
        read_or_error(calibrate.read, path)
    packed = tmp_path / "trace.json.gz"
    for seed in range(COUNT):
        packed.write_bytes(damaged_bytes(gzip.compress(json.dumps(TRACE).encode()), random.Random(seed)))
        read_or_error(calibrate.read, packed)


def test_a_packed_profile_cannot_exhaust_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(calibrate, "MOST_BYTES", 1 << 20)
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(b" " * (8 << 20)))
    with pytest.raises(MayaError, match="larger than"):
        calibrate.read(path)


def test_profiles_of_nsight(tmp_path):
    path = tmp_path / "profile.sqlite"
    base = sqlite3.connect(path)
    base.executescript("""
        create table StringIds (id integer, value text);
        create table TARGET_INFO_GPU (name text);
        create table CUPTI_ACTIVITY_KIND_KERNEL (start, end, gridX, gridY, gridZ, blockX, blockY, blockZ, demangledName);
        insert into StringIds values (1, 'vectorized_elementwise_kernel<4'), (2, x'00ff'), (3, null);
        insert into CUPTI_ACTIVITY_KIND_KERNEL values (0, 1000, 1, 1, 1, 128, 1, 1, 1), ('a', null, 1, 1, 1, 1, 1, 1, 1);
    """)
    base.close()
    sound = path.read_bytes()
    for seed in range(COUNT):
        path.write_bytes(damaged_bytes(sound, random.Random(seed)))
        read_or_error(calibrate.read, path)


def test_tables_of_measurements(tmp_path):
    path = tmp_path / "measured.csv"
    sound = b"op,m,n,k,gpu,measured_us\ngemm,1,2,3,h100,4.5\ngemm,1,2,3,h100,inf\ngemm,1,2,3,,nan\n"
    path.write_bytes(sound)
    assert len(calibrate.read(path).samples) == 1, "times that are no numbers are left out"
    for seed in range(COUNT):
        path.write_bytes(damaged_bytes(sound, random.Random(seed)))
        read_or_error(calibrate.read, path)


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz", "measured.csv", "profile.sqlite"])
def test_what_is_no_file_does_not_block(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(MayaError, match="not a regular file"):
        calibrate.read(tmp_path / name)


def test_predictions(tmp_path):
    sound = {"version": 1, "cluster": "c", "world_size": 1, "step": {"ms": 1.0}, "memory": [{"rank": 0, "peak_bytes": 1}],
             "ops": [{"kind": "gemm", "name": "k", "sizes": "", "count": 1, "ms": 1.0, "share": 1.0}], "notes": ["n"],
             "settings": {"a": "b"}, "breakdown_ms": {"compute": 1.0}, "out_of_memory": None}
    path = tmp_path / "prediction.json"
    for seed in range(4 * COUNT):
        dice = random.Random(seed)
        text = json.dumps(damaged_json(sound, dice)).encode() if seed % 2 else damaged_bytes(json.dumps(sound).encode(), dice)
        path.write_bytes(text)
        read_or_error(lambda p: api.compare(p, p), path)


def test_control_characters_are_made_visible():
    assert visible("a\x1b[31mred\x1b]0;title\x07\n") == "a\\e[31mred\\e]0;title\\x07\\n"
    assert visible("\u009b31m\u202e\ufeff\udc9b") == "\\u{009b}31m\\u{202e}\\u{feff}\\x9b"
    assert visible_lines("gemm, 3 × 4 µs\nb\x1b") == "gemm, 3 × 4 µs\nb\\e"


@pytest.fixture
def search(tmp_path, monkeypatch):
    """The directory of a search that found something, with a formula in place of the program."""
    pytest.importorskip("optuna")
    monkeypatch.setenv("MAYA_PROGRAM", str(ROOT / "tests/search/fake_maya.py"))
    from maya.search import session

    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    space = tmp_path / "space.toml"
    space.write_text('command = ["python3", "train.py", "--tp", "{tp}"]\n[parameters]\ntp = [1, 2]\n'
                     '[cluster]\nname = "dgx-a100"\n')
    folder = tmp_path / "search"
    session.perform(space, session.Settings(out=str(folder), trials=2, jobs=1))
    return space, folder


def perform(space, folder):
    from maya.search import session

    return session.perform(space, session.Settings(out=str(folder), trials=2, jobs=1))


def show(folder):
    from maya.search import session

    result = session.show(folder)
    return result.summary() + result.page() + result.to_json() + result.to_csv()


def test_searches_of_other_people(search):
    space, folder = search
    assert show(folder)
    for name in ("study.journal", "search.json", "space.toml"):
        sound = (folder / name).read_bytes()
        for seed in range(40):
            (folder / name).write_bytes(damaged_bytes(sound, random.Random(seed)))
            read_or_error(show, folder)
        (folder / name).write_bytes(sound)


def test_links_in_a_search_are_not_followed(search, tmp_path):
    space, folder = search
    victim = tmp_path / "victim"
    for name in ("search.lock", "study.journal", "search.json", "space.toml", "results.csv", "results.json", "search.html"):
        victim.write_text("theirs")
        old = (folder / name).read_bytes()
        (folder / name).unlink()
        (folder / name).symlink_to(victim)
        read_or_error(lambda f: perform(space, f), folder)
        assert victim.read_text() == "theirs", name
        (folder / name).unlink()
        (folder / name).write_bytes(old)
    (tmp_path / "elsewhere").mkdir()
    (folder / "trials").rename(tmp_path / "moved")
    (folder / "trials").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(MayaError, match="symbolic link"):
        perform(space, folder)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_search_is_private(search):
    _, folder = search
    for path in (folder, folder / "trials"):
        assert path.stat().st_mode & 0o077 == 0
    for path in folder.rglob("*"):
        if path.is_file() and path.parent == folder:
            assert path.stat().st_mode & 0o077 == 0, path


def test_text_of_a_search_does_not_steer_the_terminal(search, capsys):
    from maya.search import __main__ as program

    _, folder = search
    journal = folder / "study.journal"
    journal.write_text(journal.read_text().replace('"detail":""', '"detail":"\\u001b]0;owned\\u0007"').replace(
        '"kind":"ok"', '"kind":"crash"'))
    assert program.main(["--show", str(folder)]) == 0
    assert program.main(["--show", "\x1b[31mred"]) == 1
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err and "\\e[31mred" in shown.err
