"""`maya serve` is attacked: other sites, other users, other machines, and run directories that somebody else made."""

import http.client
import json
import os
import pathlib
import socket
import threading

import pytest
from maya import peer, serve
from maya.installation import MayaError

TOKEN = "secret-token"
PREDICTION = {"version": 1, "cluster": "h100-sxm", "world_size": 1, "command": "train.py", "step": {"ms": 12.5}}


@pytest.fixture
def folder(tmp_path) -> pathlib.Path:
    shown = tmp_path / "shown"
    (shown / "good").mkdir(parents=True)
    (shown / "good" / "prediction.json").write_text(json.dumps(PREDICTION))
    (tmp_path / "private.txt").write_text("PRIVATE")
    return shown


class Served:
    def __init__(self, folder: pathlib.Path, token: str | None = None):
        self.server = serve.make_server(folder, token=token)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str, dict]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
            reply = connection.getresponse()
            return reply.status, reply.read().decode(), dict(reply.getheaders())
        finally:
            connection.close()

    def ask_raw(self, text: str) -> bytes:
        """Everything that the server answers until it closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(text.encode())
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while part := connection.recv(65536):
                answer += part
            return answer


@pytest.fixture
def serving(folder):
    opened = []

    def start(token: str | None = None, shown: pathlib.Path = folder) -> Served:
        opened.append(Served(shown, token))
        return opened[-1]

    yield start
    for one in opened:
        one.server.shutdown()
        one.server.server_close()


@pytest.mark.parametrize("method, path", [("GET", "/"), ("GET", "/api/runs?token=wrong"), ("POST", "/"), ("PUT", "/"),
                                          ("OPTIONS", "/"), ("GET", "/?token=%C3%A9"), ("GET", "//[")])
def test_the_token_is_not_told_to_those_who_do_not_have_it(serving, method, path):
    code, text, headers = serving(TOKEN).ask(path, method)
    assert code >= 400
    assert TOKEN not in text + str(headers)


def test_the_token_becomes_a_cookie(serving):
    server = serving(TOKEN)
    code, _, headers = server.ask(f"/?token={TOKEN}")
    assert code == 200 and f"maya={TOKEN}" in headers["Set-Cookie"] and "SameSite=Strict" in headers["Set-Cookie"]
    assert server.ask("/api/runs", Cookie=f"a=b; maya={TOKEN}")[0] == 200
    assert server.ask("/api/runs", Cookie=f"notmaya={TOKEN}")[0] == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8421", "localhost.evil.example", "127.0.0.1.evil.example", "", "[evil]:1"]
)
def test_names_of_other_sites_are_refused(serving, host):
    assert serving().ask("/api/runs", Host=host)[0] == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1:8421", "[::1]:8421", "[::1]"])
def test_names_of_this_machine_are_accepted(serving, host):
    assert serving().ask("/api/runs", Host=host)[0] == 200


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_the_body_of_a_request_is_not_a_second_request(serving, method):
    """Otherwise a page could put a request with another Host into the body of one of its own."""
    server = serving()
    inner = "GET /api/runs HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = server.ask_raw(
        f"{method} /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(inner)}\r\n\r\n{inner}"
    )
    assert answer.count(b"HTTP/1.1 ") == 1 and b'"runs"' not in answer


def test_other_sites_cannot_ask_through_the_browser(serving):
    server = serving()
    assert server.ask("/api/runs", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")[0] == 403
    assert server.ask("/api/runs", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 403
    assert server.ask("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 200, "a link from a chat"
    assert server.ask("/api/runs", Sec_Fetch_Site="same-origin", Sec_Fetch_Mode="cors")[0] == 200


def test_other_users_of_the_machine_are_refused(serving, monkeypatch):
    server = serving()
    assert server.ask("/api/runs")[0] == 200
    known = peer.owners
    monkeypatch.setattr(peer, "owners", lambda: {ends: os.getuid() + 1 for ends in known()})
    code, text, _ = server.ask("/api/runs")
    assert code == 403 and "user who started it" in text


def test_the_owner_of_a_connection():
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        ends = client.getsockname(), listener.getsockname()
        assert peer.owners()[ends] == os.getuid()
        assert peer.is_own_user(*ends)


@pytest.mark.parametrize("path", ["/report?run=../", "/report?run=good/../../..", "/report?run=/etc", "/report?run=%00",
                                  "/api/search?run=..", "/compare?run=..&run=.."])
def test_only_the_folder_is_shown(serving, path):
    code, text, _ = serving().ask(path)
    assert code in (400, 500) and "PRIVATE" not in text


def test_a_what_if_reads_no_file_that_it_names(serving, folder):
    (folder.parent / "secret.toml").write_text("PRIVATE = [")
    code, text, _ = serving().ask(f"/api/predict?run=good&cluster={folder.parent}/secret.toml")
    assert code == 400 and "PRIVATE" not in text and "catalogue" in text


@pytest.mark.parametrize("name", ["report.html", "prediction.json", "run.toml", "results.json"])
def test_links_out_of_the_folder_are_not_followed(serving, folder, name):
    bad = folder / "bad"
    bad.mkdir()
    (bad / "rank-0.maya").write_text("")
    (bad / name).symlink_to(folder.parent / "private.txt")
    server = serving()
    for path in ("/report?run=bad", "/api/runs"):
        assert "PRIVATE" not in server.ask(path)[1]


def test_a_report_of_somebody_else_cannot_read_the_other_runs(serving, folder):
    (folder / "good" / "report.html").write_text("<script>fetch('/api/runs')</script>")
    code, _, headers = serving().ask("/report?run=good")
    policy = headers["Content-Security-Policy"]
    assert code == 200 and "sandbox allow-scripts" in policy and "allow-same-origin" not in policy


HOSTILE = {
    "deep": "[" * 100_000,
    "nan": '{"version": 1, "mfu": NaN}',
    "infinite": json.dumps(PREDICTION).replace("12.5", "1e999"),
    "digits": '{"version": 1, "gpus": ' + "9" * 5000 + "}",
    "types": '{"version": 1, "command": {"a": 1}, "cluster": [1], "memory": [{"peak_bytes": 3}], "mfu": "x", "step": {}}',
    "list": "[]",
    "version": '{"version": "' + "v" * 100_000 + '"}',
    "long": json.dumps({**PREDICTION, "command": "c" * 1_000_000}),
}


def test_one_bad_run_does_not_hide_the_others(serving, folder):
    for name, text in HOSTILE.items():
        (folder / name).mkdir()
        (folder / name / "prediction.json").write_text(text)
    fifo, endless = folder / "fifo", folder / "endless"
    for bad in (fifo, endless):
        bad.mkdir()
    os.mkfifo(fifo / "run.toml")
    os.mkfifo(fifo / "prediction.json")
    (endless / "prediction.json").symlink_to("/dev/zero")
    code, text, _ = serving().ask("/api/runs")
    assert code == 200 and len(text) < 50_000

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    runs = {run["id"]: run for run in json.loads(text, parse_constant=refuse)["runs"]}
    assert runs.keys() == {"good", "fifo", "endless", *HOSTILE}
    assert runs["good"]["step_ms"] == 12.5
    for run in runs.values():
        assert all(isinstance(run.get(k), (str, type(None))) for k in ("command", "cluster", "unit", "state"))
        assert all(isinstance(run.get(k), (int, float, type(None))) for k in ("gpus", "step_ms", "mfu", "memory", "usd"))


def test_bad_runs_are_errors_in_every_view(serving, folder):
    for name, text in HOSTILE.items():
        (folder / name).mkdir()
        (folder / name / "prediction.json").write_text(text)
    (folder / "search").mkdir()
    (folder / "search" / "search.json").write_text("[" * 100_000)
    server = serving()
    for name in [*HOSTILE, "search"]:
        for path in (f"/compare?run={name}&run=good", f"/api/search?run={name}", f"/search?run={name}"):
            code, text, _ = server.ask(path)
            assert code in (400, 500), (path, code, text[:200])
            assert "error" in json.loads(text)


def test_a_damaged_prediction_is_an_error_of_one_line(tmp_path, capsys):
    from maya import api, compare_page

    for name, text in HOSTILE.items():
        path = tmp_path / f"{name}.json"
        path.write_text(text)
        if name in ("infinite", "long"):
            continue  # it has all fields that are needed
        with pytest.raises(MayaError):
            api.compare(path, path)
        assert compare_page.main([str(path), str(path), "--html", str(tmp_path / "page.html")]) == 1
        assert len(capsys.readouterr().err.splitlines()) == 1
