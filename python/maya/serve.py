"""`maya serve [DIR]`: a local web view over a folder of runs and searches.

It is read-only: a what-if is simulated in memory and not stored. It listens on the loopback interface only, and answers
only to processes of the user who started it. With --host it can be reached from other machines, and then every request
needs the token that is printed.

Runs that other people made are shown too. Their report.html may hold any script, so it is delivered in a sandbox: the
browser treats it as another site, which cannot read anything of this server.
"""

from __future__ import annotations

import argparse
import hmac
import http.server
import json
import math
import os
import pathlib
import re
import secrets
import sys
import threading
import time
import urllib.parse
from typing import Any

from maya import files, peer
from maya.installation import MayaError

PAGE = pathlib.Path(__file__).with_name("serve_page.html")
DEEPEST = 4  # folders below DIR that are looked at
# Pages have their script and style inside and may load nothing, from here or anywhere else.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# Stored pages come from the run directory, which somebody else may have made.
SANDBOX = POLICY + "; sandbox allow-scripts allow-downloads"
LOOPBACK = {"127.0.0.1", "localhost", "::1"}
LONGEST = 2000  # characters of a command or a name in the list


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
        p = files.parse_json(prediction)
        if p.get("version") != 1:
            return {**entry, "state": f"version {p.get('version')} is newer than this program reads"[:LONGEST]}
        memory = max((m["peak_bytes"] for m in p.get("memory", [])), default=0)
        throughput = p.get("throughput") or {}
        state = "out of memory" if p.get("out_of_memory") else "ok" if p.get("step") else "no step"
        return {
            **entry,
            "state": state,
            "command": _short(p.get("command")),
            "cluster": _short(p.get("cluster")),
            "gpus": _finite(p.get("gpus")),
            "step_ms": _finite((p.get("step") or {}).get("ms")),
            "per_second": _finite(throughput.get("per_second")),
            "unit": _short(throughput.get("unit")),
            "mfu": _finite(p.get("mfu")),
            "memory": _finite(memory),
            "usd": _finite((p.get("cost") or {}).get("usd_per_step")),
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return {**entry, "state": "damaged prediction.json"}


def _short(text: Any) -> str | None:
    """Text of bounded length, whatever the file has in its place."""
    return None if text is None else str(text)[:LONGEST]


def _finite(number: Any) -> float | None:
    """A number that JSON can hold."""
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return None
    return number if abs(number) < 1e300 and not math.isnan(number) else None


def search_entry(folder: str | pathlib.Path) -> dict:
    results = _read(folder, "results.json")
    entry: dict[str, Any] = {"state": "running", "command": os.path.basename(folder)}
    try:
        data = files.parse_json(results) if results else {}
        entry["state"] = "search" if data else "running"
    except ValueError:
        entry["state"] = "damaged results.json"
    return entry


def _read(folder: str | pathlib.Path, name: str) -> str:
    """The text of a file of the folder; empty if it is missing or not a regular file. A link could lead out of the
    folder that is shown."""
    try:
        return files.read_text(os.path.join(folder, name), follow=False)
    except OSError:
        return ""


def _toml(text: str, key: str) -> str | None:
    """A string, a date or a joined list of strings from run.toml. The file is our own, so no TOML parser is needed."""
    found = re.search(rf'^{key} = (?:"((?:[^"\\]|\\.)*)"|\[(.*?)\]$|([0-9TZ:.+-]+)$)', text, re.M)
    if not found:
        return None
    if found[3]:
        return found[3]  # a date
    words = found[1] if found[1] is not None else " ".join(re.findall(r'"((?:[^"\\]|\\.)*)"', found[2]))
    return words[:LONGEST]


class Handler(http.server.BaseHTTPRequestHandler):
    server_version, sys_version, protocol_version = "maya", "", "HTTP/1.1"
    timeout = 60  # seconds that a connection may be idle
    folder: Folder
    token: str | None = None
    granted = False  # whether this request may see anything

    def do_GET(self) -> None:
        self.granted = False
        # The body of a GET request is not read: on an open connection it would count as the next request.
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self.close_connection = True
        try:
            url = urllib.parse.urlsplit(self.path)
            asked = urllib.parse.parse_qs(url.query)
            self.granted = self._allowed(url.path, asked)
            if self.granted:
                self._answer(url.path, asked)
        except MayaError as problem:
            self._json({"error": str(problem)}, 400)
        except ConnectionError:
            self.close_connection = True
        except Exception as problem:  # a damaged or hostile run must not end the view of the others
            self._json({"error": f"cannot show this ({type(problem).__name__}: {str(problem)[:300]})"}, 500)

    def do_POST(self) -> None:
        """There is nothing to write. The body is not read, so the connection ends: the body could otherwise be a second
        request, with a Host of its own."""
        self.granted, self.close_connection = False, True
        self._text("this view is read-only", 405)

    do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_POST

    def _allowed(self, path: str, asked: dict) -> bool:
        """Rejects other users of the machine, other machines without the token, and requests that a page of another
        site makes through the user's browser (DNS rebinding, cross-site requests)."""
        site, mode = self.headers.get("Sec-Fetch-Site", "none"), self.headers.get("Sec-Fetch-Mode", "")
        if site not in ("none", "same-origin") and (mode != "navigate" or path.startswith("/api/")):
            return self._refuse("this view does not answer to pages of other sites")
        if self.token is not None:
            cookie = re.search(r"(?:^|;\s*)maya=([\w-]+)", self.headers.get("Cookie") or "")
            given = asked.get("token", [cookie[1] if cookie else ""])[0]
            if not hmac.compare_digest(given.encode(), self.token.encode()):
                return self._refuse("the address needs the token that `maya serve` printed: …/?token=…")
            return True
        if _host_name(self.headers.get("Host") or "") not in LOOPBACK:
            return self._refuse("this view answers to localhost only")
        if not peer.is_own_user(self.client_address[:2], self.connection.getsockname()[:2]):
            return self._refuse(
                "this view answers only to the user who started it; for others, start it with --host and send them the "
                "address that it prints"
            )
        return True

    def _refuse(self, why: str) -> bool:
        self.close_connection = True
        self._text(why, 403)
        return False

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
            run, cluster = self.folder.path(one("run")), catalogued(asked)
            began = time.perf_counter()
            found = api.predict(run, cluster, set=settings_of(asked))
            self._json({"prediction": found.raw, "seconds": time.perf_counter() - began})
        elif path == "/api/search":
            self._json(search_state(self.folder.path(one("run"))))
        elif path == "/report":
            folder = self.folder.path(one("run"))
            cluster, settings = catalogued(asked), settings_of(asked)
            stored = _read(folder, "report.html") if not cluster and not settings else None
            self._html(stored or api.page(api.Run(folder).predict(cluster, settings)), SANDBOX)
        elif path == "/search":
            self._html(search_page(self.folder.path(one("run"))), SANDBOX)
        elif path == "/compare":
            runs = [self.folder.path(name) for name in asked.get("run", [])]
            names = asked.get("run", [])
            predictions = [api.Run(run).prediction for run in runs]
            if len(predictions) < 2:
                raise MayaError("compare: choose at least two runs")
            from maya.compare_page import html_of

            self._html(html_of(names, [p.raw for p in predictions]), SANDBOX)
        else:
            self._text("there is nothing here", 404)

    def _html(self, text: str, policy: str = POLICY) -> None:
        self._send(text.encode(errors="replace"), "text/html; charset=utf-8", policy=policy)

    def _json(self, data: Any, code: int = 200) -> None:
        self._send(json.dumps(data).encode(), "application/json", code)

    def _text(self, text: str, code: int) -> None:
        self._send((text + "\n").encode(errors="replace"), "text/plain; charset=utf-8", code)

    def _send(self, body: bytes, kind: str, code: int = 200, policy: str = POLICY) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Cache-Control", "no-store")
        if self.close_connection:
            self.send_header("Connection", "close")
        if self.token and self.granted:  # only who has shown the token gets it as a cookie
            self.send_header("Set-Cookie", f"maya={self.token}; HttpOnly; SameSite=Strict; Path=/")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: Any) -> None:
        pass


def _host_name(host: str) -> str:
    """The name in a Host header: localhost:8421 → localhost, [::1]:8421 → ::1."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


def settings_of(asked: dict) -> dict[str, str]:
    """The settings of a what-if in a request: set=network.nic_gbps%3D100&set=…"""
    return dict(pair.split("=", 1) for pair in asked.get("set", []) if "=" in pair)


def catalogued(asked: dict) -> str | None:
    """The cluster of a what-if: a name of the catalogue."""
    cluster = asked.get("cluster", [""])[0]
    if "/" in cluster or cluster.endswith(".toml"):
        raise MayaError(f"{cluster}: name a cluster of the catalogue; this view reads no other files")
    return cluster or None


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
        return {"finished": True, "summary": "", "results": files.parse_json(text)}


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
