"""`maya serve [DIR]`: a local web view over a folder of runs and searches.

It is read-only: a what-if is simulated in memory and not stored. It listens on the loopback interface only. With --host
it can be reached from other machines, and then every request needs the token that is printed.
"""

from __future__ import annotations

import argparse
import hmac
import http.server
import json
import os
import pathlib
import re
import secrets
import sys
import threading
import time
import urllib.parse
from typing import Any

from maya.installation import MayaError

PAGE = pathlib.Path(__file__).with_name("serve_page.html")
DEEPEST = 4  # folders below DIR that are looked at
# Pages have their script and style inside and may load nothing, from here or anywhere else.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
LOOPBACK = {"127.0.0.1", "localhost", "::1"}


class Folder:
    """The runs and searches below a folder. They are read again when their files change."""

    def __init__(self, root: pathlib.Path):
        self.root = root.resolve()
        self._known: dict[str, tuple[Any, dict]] = {}
        self._lock = threading.Lock()
        self.scanning = False
        self._last = 0.0

    def path(self, name: str) -> pathlib.Path:
        """A folder below the root. Raises MayaError for anything else."""
        found = (self.root / name).resolve()
        if found != self.root and self.root not in found.parents:
            raise MayaError(f"{name} is not in the folder that is shown")
        if not found.is_dir():
            raise MayaError(f"{name}: no such run")
        return found

    def entries(self) -> list[dict]:
        """The runs that are known now. Starts a scan in the background if the last one is old."""
        with self._lock:
            begin = not self.scanning and time.monotonic() - self._last > 2
            self.scanning = self.scanning or begin
        if begin:
            thread = threading.Thread(target=self._scan, daemon=True)
            thread.start()
            thread.join(timeout=1.0)  # small folders are scanned immediately
        with self._lock:
            return [entry for _, entry in self._known.values()]

    def _scan(self) -> None:
        seen = set()
        try:
            for folder, kind in self._find(self.root, 0):
                name = os.path.relpath(folder, self.root)
                seen.add(name)
                stamp = [
                    _stamp(os.path.join(folder, f))
                    for f in ("prediction.json", "run.toml", "results.json", "study.journal")
                ]
                with self._lock:
                    old = self._known.get(name)
                if old is None or old[0] != stamp:
                    entry = run_entry(folder) if kind == "run" else search_entry(folder)
                    with self._lock:
                        self._known[name] = (stamp, {"id": name, "kind": kind, **entry})
        finally:
            with self._lock:
                for name in set(self._known) - seen:
                    del self._known[name]
                self.scanning, self._last = False, time.monotonic()

    def _find(self, folder: pathlib.Path | str, depth: int) -> Any:
        try:
            entries = sorted(os.scandir(folder), key=lambda e: e.name)
        except OSError:
            return
        names = {e.name for e in entries}
        if "search.json" in names:
            yield folder, "search"  # its trials are shown within it
            return
        if (
            "run.toml" in names
            or "prediction.json" in names
            or any(n.startswith("rank-") and n.endswith(".maya") for n in names)
        ):
            yield folder, "run"
            return
        if depth < DEEPEST:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                    yield from self._find(entry.path, depth + 1)


def _stamp(path: str) -> Any:
    try:
        found = os.stat(path)
        return found.st_mtime_ns, found.st_size
    except OSError:
        return None


def run_entry(folder: str | pathlib.Path) -> dict:
    """A row of the list. It says if a run is in progress, has no prediction, is damaged or of a newer version."""
    text = _read(folder, "run.toml")
    entry: dict[str, Any] = {
        "state": "no prediction",
        "started": _toml(text, "started"),
        "cluster": _toml(text, "cluster"),
        "command": _toml(text, "command"),
    }
    if text and not _toml(text, "ended"):
        entry["state"] = "running"
    prediction = _read(folder, "prediction.json")
    if not prediction:
        return entry
    try:
        p = json.loads(prediction)
        if p.get("version") != 1:
            return {**entry, "state": f"version {p.get('version')} is newer than this program reads"}
        memory = max((m["peak_bytes"] for m in p.get("memory", [])), default=0)
        throughput = p.get("throughput") or {}
        state = "out of memory" if p.get("out_of_memory") else "ok" if p.get("step") else "no step"
        return {
            **entry,
            "state": state,
            "command": p.get("command"),
            "cluster": p.get("cluster"),
            "gpus": p.get("gpus"),
            "step_ms": (p.get("step") or {}).get("ms"),
            "per_second": throughput.get("per_second"),
            "unit": throughput.get("unit"),
            "mfu": p.get("mfu"),
            "memory": memory,
            "usd": (p.get("cost") or {}).get("usd_per_step"),
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return {**entry, "state": "damaged prediction.json"}


def search_entry(folder: str | pathlib.Path) -> dict:
    results = _read(folder, "results.json")
    entry: dict[str, Any] = {"state": "running", "command": os.path.basename(folder)}
    try:
        data = json.loads(results) if results else {}
        entry["state"] = "search" if data else "running"
    except ValueError:
        entry["state"] = "damaged results.json"
    return entry


def _read(folder: str | pathlib.Path, name: str) -> str:
    try:
        with open(os.path.join(folder, name), errors="replace") as file:
            return file.read(64 << 20)
    except OSError:
        return ""


def _toml(text: str, key: str) -> str | None:
    """A string, a date or a joined list of strings from run.toml. The file is our own, so no TOML parser is needed."""
    found = re.search(rf'^{key} = (?:"((?:[^"\\]|\\.)*)"|\[(.*?)\]$|([0-9TZ:.+-]+)$)', text, re.M)
    if not found:
        return None
    if found[3]:
        return found[3]  # a date
    return found[1] if found[1] is not None else " ".join(re.findall(r'"((?:[^"\\]|\\.)*)"', found[2]))


class Handler(http.server.BaseHTTPRequestHandler):
    server_version, sys_version, protocol_version = "maya", "", "HTTP/1.1"
    folder: Folder
    token: str | None = None

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        asked = urllib.parse.parse_qs(url.query)
        if not self._allowed(asked):
            return
        try:
            self._answer(url.path, asked)
        except MayaError as problem:
            self._json({"error": str(problem)}, 400)
        except BrokenPipeError:
            pass

    def do_POST(self) -> None:
        self._text("this view is read-only", 405)

    do_PUT = do_DELETE = do_PATCH = do_POST

    def _allowed(self, asked: dict) -> bool:
        """Rejects requests that a page of another site makes through the user's browser (DNS rebinding)."""
        host = (self.headers.get("Host") or "").rsplit(":", 1)[0].strip("[]")
        if self.token is None:
            if host not in LOOPBACK:
                self._text("this view answers to localhost only", 403)
                return False
            return True
        cookie = re.search(r"maya=([\w-]+)", self.headers.get("Cookie") or "")
        given = asked.get("token", [cookie[1] if cookie else ""])[0]
        if not hmac.compare_digest(given, self.token):
            self._text("the address needs the token that `maya serve` printed: …/?token=…", 403)
            return False
        return True

    def _answer(self, path: str, asked: dict) -> None:
        from maya import api

        def one(name: str) -> str:
            if name not in asked:
                raise MayaError(f"the request has no '{name}'")
            return asked[name][0]

        if path == "/":
            self._html(PAGE.read_text())
        elif path == "/api/runs":
            self._json(
                {"folder": self.folder.root.name, "runs": self.folder.entries(), "scanning": self.folder.scanning}
            )
        elif path == "/api/clusters":
            self._json({"clusters": [c["name"] for c in api.clusters()], "gpus": [g["name"] for g in api.gpus()]})
        elif path == "/api/predict":
            run = self.folder.path(one("run"))
            began = time.perf_counter()
            found = api.predict(run, asked.get("cluster", [None])[0] or None, set=settings_of(asked))
            self._json({"prediction": found.raw, "seconds": time.perf_counter() - began})
        elif path == "/api/search":
            self._json(search_state(self.folder.path(one("run"))))
        elif path == "/report":
            folder = self.folder.path(one("run"))
            page, cluster, settings = folder / "report.html", asked.get("cluster", [""])[0], settings_of(asked)
            stored = page.exists() and not cluster and not settings
            self._html(page.read_text() if stored else api.page(api.Run(folder).predict(cluster or None, settings)))
        elif path == "/search":
            self._html(search_page(self.folder.path(one("run"))))
        elif path == "/compare":
            runs = [self.folder.path(name) for name in asked.get("run", [])]
            names = asked.get("run", [])
            predictions = [api.Run(run).prediction for run in runs]
            if len(predictions) < 2:
                raise MayaError("compare: choose at least two runs")
            from maya.compare_page import html_of

            self._html(html_of(names, [p.raw for p in predictions]))
        else:
            self._text("there is nothing here", 404)

    def _html(self, text: str) -> None:
        self._send(text.encode(), "text/html; charset=utf-8")

    def _json(self, data: Any, code: int = 200) -> None:
        self._send(json.dumps(data).encode(), "application/json", code)

    def _text(self, text: str, code: int) -> None:
        self._send((text + "\n").encode(), "text/plain; charset=utf-8", code)

    def _send(self, body: bytes, kind: str, code: int = 200) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        if self.token:
            self.send_header("Set-Cookie", f"maya={self.token}; HttpOnly; SameSite=Strict; Path=/")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *words: Any) -> None:
        pass


def settings_of(asked: dict) -> dict[str, str]:
    """The settings of a what-if in a request: set=network.nic_gbps%3D100&set=…"""
    return dict(pair.split("=", 1) for pair in asked.get("set", []) if "=" in pair)


def search_state(folder: pathlib.Path) -> dict:
    """The state of a search: its ranked configurations and the number of trials by outcome."""
    try:
        from maya.search import session

        found = session.show(str(folder))
        data = json.loads(found.to_json())
        return {"finished": found.finished, "summary": found.summary(), "results": data}
    except ImportError:
        text = _read(folder, "results.json")
        if not text:
            raise MayaError("a search that still runs is shown with Optuna: pip install 'maya[search]'") from None
        return {"finished": True, "summary": "", "results": json.loads(text)}


def search_page(folder: pathlib.Path) -> str:
    try:
        from maya.search import session

        return session.show(str(folder)).page()
    except ImportError:
        return _read(folder, "search.html")


def make_server(folder: str | os.PathLike, host: str = "127.0.0.1", port: int = 0, token: str | None = None):
    """Makes the server without starting it. Raises MayaError if the port is in use."""
    handler = type("Handler", (Handler,), {"folder": Folder(pathlib.Path(folder)), "token": token})
    try:
        server = http.server.ThreadingHTTPServer((host, port), handler)
    except OSError as problem:
        raise MayaError(
            f"cannot listen on {host}:{port} ({problem.strerror or problem}); choose another port with --port"
        ) from None
    server.daemon_threads = True
    return server


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="maya serve",
        description="Local web view over a folder of runs and searches",
        epilog="Nothing is written. Other machines reach it only with --host, and need the token.",
    )
    parser.add_argument(
        "folder", nargs="?", default=".", metavar="DIR", help="folder with runs and searches (default: this one)"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=int, default=8421, help="port (default: 8421; 0: any free one)")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    options = parser.parse_args(arguments)
    if not os.path.isdir(options.folder):
        print(
            f"maya: {options.folder}: no such folder; name one that holds runs, for example maya-runs", file=sys.stderr
        )
        return 1
    token = None if options.host in LOOPBACK else secrets.token_urlsafe(24)
    try:
        server = make_server(options.folder, options.host, options.port, token)
    except MayaError as problem:
        print(f"maya: {problem}", file=sys.stderr)
        return 1
    port = server.server_address[1]
    shown = "localhost" if options.host in LOOPBACK else options.host
    if not options.quiet or token:
        print(f"maya: http://{shown}:{port}/{'?token=' + token if token else ''}  (Ctrl-C ends it)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
