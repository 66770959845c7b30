"""The search on a Ray cluster of several local nodes, one of which is killed in the middle."""

import json
import os
import pathlib
import threading
import time

import pytest

ray = pytest.importorskip("ray", reason="pip install 'maya[ray]'; `make test-ray` does it")
from ray.cluster_utils import Cluster  # noqa: E402

SPACE = """
command = ["python3", "train.py", "--world", "8", "--layers", "4", "--micro", "{micro}", "--tp", "{tp}"]
[parameters]
micro = [1, 2, 4, 8]
tp = [1, 2, 4, 8]
[trial]
timeout_s = 60
memory_gib = 0.1
"""


def test_a_dying_node_loses_no_trial(fake, tmp_path, monkeypatch):
    from maya.search import session

    log = tmp_path / "log.txt"
    package = str(pathlib.Path(session.__file__).resolve().parents[2])
    for name, value in (("FAKE_LOG", str(log)), ("FAKE_SECONDS", "1"), ("PYTHONPATH", package)):
        monkeypatch.setenv(name, value)
    (tmp_path / "space.toml").write_text(SPACE)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    doomed = cluster.add_node(num_cpus=2)
    cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR",
             runtime_env={"env_vars": {"PYTHONPATH": package, "FAKE_LOG": str(log), "FAKE_SECONDS": "1"}})
    try:
        def kill():
            while not log.exists() or len(log.read_text().splitlines()) < 5:
                time.sleep(0.1)
            cluster.remove_node(doomed, allow_graceful=False)

        killer = threading.Thread(target=kill)
        killer.start()
        result = session.perform(tmp_path / "space.toml", session.Settings(out=str(tmp_path / "out"), engine="ray"))
        killer.join()
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert len(result.records) == 16
    assert len({tuple(r.values.items()) for r in result.records}) == 16
    assert {r.kind for r in result.records} == {"ok"}
    trials = json.loads((tmp_path / "out" / "results.json").read_text())["trials"]
    assert len(trials) == 16
    assert os.path.exists(tmp_path / "out" / "search.html")
