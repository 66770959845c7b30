"""Virtual environments of the matrix, created with uv: packages of one version are on the disk once, hard-linked."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from .description import Environment

# What `nvidia = false` leaves out: the libraries Maya stands in for. cuda-bindings stays, it is Python code that torch
# imports.
NVIDIA = re.compile(r"(nvidia-(?!ml-py)|cuda-toolkit\b)")


class Failed(Exception):
    """An environment that could not be created, in one line."""


class Venvs:
    def __init__(self, home: pathlib.Path):
        self.home = home
        self.uv_directory = home / "uv"

    def path(self, environment: Environment) -> pathlib.Path:
        return self.home / "environments" / environment.name

    def python(self, environment: Environment) -> pathlib.Path:
        return self.path(environment) / "bin" / "python"

    @staticmethod
    def inputs(environment: Environment) -> str:
        what = [environment.python, environment.packages, environment.bare, environment.nvidia]
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]

    def is_ready(self, environment: Environment) -> bool:
        stamp = self.path(environment) / "inputs"
        return stamp.exists() and stamp.read_text() == self.inputs(environment) and self.python(environment).exists()

    def create(self, environment: Environment) -> None:
        if self.is_ready(environment):
            return
        path = self.path(environment)
        shutil.rmtree(path, ignore_errors=True)
        interpreter = find_python(environment.python)
        if not interpreter:
            raise Failed(f"no python{environment.python} on PATH or in pyenv")
        self.uv("venv", "--quiet", "--python", interpreter, str(path))
        python = str(self.python(environment))
        resolved = self.uv("pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python", python, "-",
                           feed="\n".join(environment.packages))
        wanted = [line for line in resolved.splitlines() if environment.nvidia or not NVIDIA.match(line)]
        (path / "packages.txt").write_text("\n".join(wanted) + "\n")
        self.uv("pip", "install", "--quiet", "--no-deps", "--python", python, "-r", str(path / "packages.txt"))
        if environment.bare:
            self.uv(
                "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--python", python, *environment.bare
            )
        (path / "inputs").write_text(self.inputs(environment))

    def versions(self, environment: Environment) -> dict[str, str]:
        """Name to version, of everything installed."""
        listed = self.uv("pip", "freeze", "--python", str(self.python(environment)))
        return dict(line.split("==", 1) for line in listed.splitlines() if "==" in line)

    def remove(self, environment: Environment) -> None:
        shutil.rmtree(self.path(environment), ignore_errors=True)

    def uv(self, *words: str, feed: str | None = None) -> str:
        program = self.uv_directory / "bin" / "uv"
        if not program.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(self.uv_directory)], check=True)
            done = subprocess.run(
                [str(self.uv_directory / "bin" / "pip"), "install", "-q", "--disable-pip-version-check", "uv"],
                capture_output=True,
                text=True,
            )
            if done.returncode:
                raise Failed(f"pip could not install uv: {last_line(done.stderr)}")
        surroundings = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH", "LD_PRELOAD")}
        surroundings.setdefault("UV_CACHE_DIR", str(self.home / "cache"))
        surroundings["UV_PYTHON_DOWNLOADS"] = "never"
        # pip's own settings hold for uv too.
        for theirs, ours in (("PIP_INDEX_URL", "UV_DEFAULT_INDEX"), ("PIP_EXTRA_INDEX_URL", "UV_INDEX"),
                             ("PIP_CERT", "SSL_CERT_FILE"), ("PIP_DEFAULT_TIMEOUT", "UV_HTTP_TIMEOUT")):
            if os.environ.get(theirs):
                surroundings.setdefault(ours, os.environ[theirs])
        done = subprocess.run([str(program), *words], input=feed, capture_output=True, text=True, env=surroundings)
        if done.returncode:
            raise Failed(f"uv {' '.join(words[:2])}: {last_line(done.stderr)}")
        return done.stdout


def find_python(version: str) -> str | None:
    """A Python of this version that really starts: pyenv leaves shims of versions it does not offer."""
    candidates = [shutil.which(f"python{version}")]
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    candidates += [str(p) for p in sorted(pyenv.glob(f"{version}.*/bin/python{version}"), reverse=True)]
    if sys.version_info[:2] == tuple(int(n) for n in version.split(".")):
        candidates.append(sys.executable)
    for candidate in candidates:
        if candidate:
            done = subprocess.run(
                [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True
            )
            if done.returncode == 0 and done.stdout.strip() == version:
                return candidate
    return None


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no message"
