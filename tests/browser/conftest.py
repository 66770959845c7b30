"""Pages in a real browser: Chromium without a window, spoken to over a pipe (no driver, no package)."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
SHOTS = ROOT / "build" / "screenshots"


class Browser:
    """One tab. `errors` are exceptions of scripts, `requests` the addresses that the page asked for."""

    def __init__(self, program: str, profile: pathlib.Path):
        ask, self._out = os.pipe()
        self._in, answer = os.pipe()
        # Chromium reads its questions from descriptor 3 and answers on 4.
        words = [
            program,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
            "--disable-dev-shm-usage",
            f"--user-data-dir={profile}",
            "--remote-debugging-pipe",
        ]
        shell = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", str(ask), str(answer), *words],
            pass_fds=(ask, answer),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(ask)
        os.close(answer)
        self._number, self._buffer = 0, b""
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._session = None
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self._session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self(f"{domain}.enable")

    def __call__(self, method: str, **params) -> dict:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._next()
            if reply.get("id") == self._number:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']['message']}")
                return reply["result"]
            self._note(reply)

    def _next(self) -> dict:
        while b"\0" not in self._buffer:
            got = os.read(self._in, 1 << 20)
            if not got:
                raise RuntimeError("the browser ended")
            self._buffer += got
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)

    def _note(self, event: dict) -> None:
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"].get("exception", {}).get("description", str(params)))
        elif event.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"] + " " + params["entry"].get("url", ""))

    def open(self, url: str, width: int = 1200, height: int = 900, dark: bool = False, script: bool = True) -> None:
        self.errors.clear()
        self.requests.clear()
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        self("Emulation.setScriptExecutionDisabled", value=not script)
        self("Page.navigate", url="about:blank")
        self("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def __getitem__(self, expression: str):
        """The value of a JavaScript expression; promises are awaited."""
        found = self("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"].get("exception", {}).get("description", expression))
        return found["result"].get("value")

    def wait(self, expression: str, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not self[expression]:
            assert time.monotonic() < end, f"never true: {expression}; errors: {self.errors}"
            time.sleep(0.05)

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self("Input.dispatchKeyEvent", type=kind, key=key, text=key if len(key) == 1 and kind == "keyDown" else "")

    def shot(self, name: str) -> pathlib.Path:
        """A picture of the whole page, kept in build/screenshots to be looked at."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        size = self("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 8000), "scale": 1}
        data = self("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        path = SHOTS / f"{name}.png"
        path.write_bytes(base64.b64decode(data))
        return path

    def close(self) -> None:
        try:
            self._session = None
            self("Browser.close")
        except (RuntimeError, OSError):
            pass
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        pytest.skip("no Chromium on this machine; `tools/setup debian chromium` installs Debian's")
    opened = Browser(program, tmp_path_factory.mktemp("chromium"))
    yield opened
    opened.close()


SCRIPT = """
import sys
import torch
import torch.nn as nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(1024, 4096), nn.Linear(4096, 1024)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))

with torch.device("cuda"):
    model = nn.Sequential(*(Block() for _ in range(4)))
optimizer = torch.optim.AdamW(model.parameters())
for step in range(5):
    model(torch.randn(4096, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>"


@pytest.fixture(scope="session")
def runs(tmp_path_factory) -> pathlib.Path:
    """A folder with the runs `one` (its command is hostile), `two`, and some that are damaged."""
    import maya

    folder = tmp_path_factory.mktemp("runs")
    script = folder / "train.py"
    script.write_text(SCRIPT)
    for name, cluster, words in (("one", "h100-sxm", [HOSTILE]), ("two", "a100-80gb-sxm", [])):
        maya.run(
            [sys.executable, str(script), *words], cluster=cluster, out=folder / "runs" / name, stacks=True, quiet=True
        )
    (folder / "runs" / "empty").mkdir()
    (folder / "runs" / "empty" / "run.toml").write_text(
        'version = 1\ncommand = ["python", "x.py"]\nstarted = 2026-01-01T00:00:00Z\n'
    )
    (folder / "runs" / "newer").mkdir()
    (folder / "runs" / "newer" / "prediction.json").write_text('{"version": 9}')
    (folder / "runs" / "damaged").mkdir()
    (folder / "runs" / "damaged" / "prediction.json").write_text('{"version": 1, "memory": 3')
    return folder / "runs"
