"""`maya serve` in Chromium and by hand-made requests."""

import json
import threading
import time
import urllib.error
import urllib.request

import pytest
from maya import serve
from maya.installation import MayaError


@pytest.fixture(scope="module")
def address(runs):
    server = serve.make_server(runs)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://localhost:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def fetch(url: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers, method=method), timeout=60) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def test_list_reports_the_problem_of_each_run(address):
    runs = {run["id"]: run for run in json.loads(fetch(address + "/api/runs")[1])["runs"]}
    assert runs["one"]["state"] == "ok" and runs["one"]["step_ms"] > 0 and runs["one"]["started"].startswith("20")
    assert (
        runs["empty"]["state"] == "running"
        and "newer" in runs["newer"]["state"]
        and "damaged" in runs["damaged"]["state"]
    )


def test_list_filter_sort_and_what_if(browser, address):
    browser.open(address + "/")
    browser.wait("document.querySelectorAll('#rows tr').length >= 5")
    browser.shot("serve-list")
    browser[
        "(() => { const f = document.getElementById('filter'); f.value = 'step<100000 ok'; f.dispatchEvent(new "
        "Event('input')); })()"
    ]
    assert browser["document.querySelectorAll('#rows tr').length"] == 2
    browser["[...document.querySelectorAll('th button')].find(b => b.textContent === 'step').click()"]
    assert browser["document.querySelector('#rows a').textContent"] == "one"  # an H100 is faster than an A100
    assert browser["window.hacked"] is None
    browser["[...document.querySelectorAll('#rows button')].find(b => b.textContent === 'what if').click()"]
    browser.wait("document.querySelector('dialog .panel') !== null")
    browser[
        "(() => { const [c, s] = document.querySelectorAll('dialog input'); c.value = 'b200-sxm'; s.value = "
        "'host.speed=2';"
        " [...document.querySelectorAll('dialog button')].find(b => b.textContent === 'predict').click(); })()"
    ]
    browser.wait("document.querySelectorAll('dialog .panel').length === 2 && document.getElementById('done') !== null")
    browser.shot("serve-what-if")
    assert "b200-sxm" in browser["document.querySelector('dialog').innerText"]
    print("what-if:", browser["document.getElementById('done').textContent"])
    assert browser.errors == []


def test_an_address_that_opens_a_what_if(browser, address):
    browser.open(address + "/#what-if=one&set=communication%3D0&set=nonsense.key%3D1", width=390)
    browser.wait("document.querySelector('dialog .bad') !== null")
    assert "nonsense" in browser["document.querySelector('dialog .bad').textContent"]
    assert browser["document.documentElement.scrollWidth"] <= 390


def test_reports_and_comparisons(browser, address):
    browser.open(address + "/report?run=one")
    assert browser["document.querySelectorAll('canvas').length"] == 1 and browser["window.hacked"] is None
    browser.open(address + "/compare?run=one&run=two")
    assert browser["document.querySelectorAll('td.differs').length"] > 5 and browser.errors == []


@pytest.mark.parametrize(
    "path, code",
    [
        ("/report?run=../../etc", 400),
        ("/report?run=/etc", 400),
        ("/report", 400),
        ("/nothing", 404),
        ("/api/predict?run=nowhere", 400),
        ("/compare?run=one", 400),
        ("/api/predict?run=one&cluster=nonsense", 400),
        ("/report?run=empty", 400),
    ],
)
def test_bad_requests(address, path, code):
    assert fetch(address + path)[0] == code


def test_other_sites_and_writes_are_refused(address):
    assert fetch(address + "/api/runs", Host="evil.example")[0] == 403
    for method in ("POST", "PUT", "DELETE"):
        assert fetch(address + "/", method)[0] == 405


def test_token_is_required_if_other_machines_can_connect(runs):
    server = serve.make_server(runs, token="secret-token")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        assert fetch(base + "/api/runs")[0] == 403 and fetch(base + "/api/runs?token=wrong")[0] == 403
        assert fetch(base + "/api/runs?token=secret-token")[0] == 200
        assert fetch(base + "/api/runs", Cookie="maya=secret-token")[0] == 200
    finally:
        server.shutdown()
        server.server_close()


def test_a_report_of_somebody_else_cannot_read_the_other_runs(browser, tmp_path):
    (tmp_path / "sent").mkdir()
    (tmp_path / "sent" / "prediction.json").write_text('{"version": 1}')
    (tmp_path / "sent" / "report.html").write_text(
        "<script>fetch('/api/runs').then(r => r.text()).then(t => { window.found = t; })"
        ".catch(() => { window.found = 'refused'; });</script>"
    )
    server = serve.make_server(tmp_path)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        browser.open(f"http://localhost:{server.server_address[1]}/report?run=sent")
        browser.wait("window.found !== undefined")
        assert browser["window.found"] == "refused"
    finally:
        server.shutdown()
        server.server_close()


def test_a_port_in_use(runs):
    first = serve.make_server(runs)
    try:
        with pytest.raises(MayaError, match="--port"):
            serve.make_server(runs, port=first.server_address[1])
    finally:
        first.server_close()


def test_many_runs(tmp_path, runs):
    text = (runs / "two" / "prediction.json").read_text()
    small = json.dumps({**{k: v for k, v in json.loads(text).items() if k not in ("ops", "code")}})
    for i in range(2000):
        (tmp_path / f"run-{i}").mkdir()
        (tmp_path / f"run-{i}" / "prediction.json").write_text(small)
    folder = serve.Folder(tmp_path)
    for _ in range(600):
        entries = folder.entries()
        if not folder.scanning and len(entries) == 2000:
            break
        time.sleep(0.1)
    assert len(entries) == 2000 and all(e["state"] == "ok" for e in entries)


def test_a_what_if_has_a_report(browser, address):
    browser.open(address + "/report?run=one&cluster=b200-sxm&set=usd_per_gpu_hour%3D2")
    assert browser.errors == [] and "b200-sxm" in browser["document.querySelector('.sub').textContent"]
    assert "usd_per_gpu_hour=2" in browser["document.body.innerText"]
