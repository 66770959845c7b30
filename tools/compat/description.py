"""matrix.toml as objects."""

from __future__ import annotations

import pathlib
from dataclasses import dataclass, field


def toml(text: str) -> dict:
    # The standard library reads TOML from Python 3.11 on; before that tomli is its twin, and pip carries a copy.
    try:
        import tomllib
    except ImportError:
        try:
            import tomli as tomllib
        except ImportError:
            from pip._vendor import tomli as tomllib
    return tomllib.loads(text)


@dataclass
class Environment:
    name: str
    packages: list[str]
    workloads: list[str]
    python: str = "3.11"
    nvidia: bool = False
    bare: list[str] = field(default_factory=list)
    same_as: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    note: str = ""
    obstacles: dict[str, str] = field(default_factory=dict)


class Mistake(Exception):
    """Something in matrix.toml that cannot be meant."""


def read(path: pathlib.Path, known_workloads: set[str]) -> list[Environment]:
    try:
        data = toml(path.read_text())
    except ValueError as error:
        raise Mistake(f"{path}: {error}") from None
    found = [*releases(data.get("torch", {})), *data.get("environment", [])]
    sets = data.get("sets", {})
    environments: list[Environment] = []
    for entry in found:
        left_out = entry.pop("without", [])
        try:
            environment = Environment(**entry)
        except TypeError as error:
            raise Mistake(f"{path}: environment {entry.get('name', '?')}: {error}") from None
        environment.workloads = [w for w in expanded(environment, sets, path) if w not in left_out]
        strangers = {*environment.workloads, *environment.obstacles, *left_out} - known_workloads
        if strangers:
            raise Mistake(
                f"{path}: {environment.name} names {', '.join(sorted(strangers))}, not in tests/workloads/workloads.py"
            )
        environments.append(environment)
    names = [e.name for e in environments]
    for environment in environments:
        if names.count(environment.name) > 1:
            raise Mistake(f"{path}: two environments are called {environment.name}")
        if environment.same_as and environment.same_as not in names:
            raise Mistake(f"{path}: {environment.name} is the same as {environment.same_as}, which is not there")
    return environments


def releases(table: dict) -> list[dict]:
    entries = []
    for version, given in table.get("releases", {}).items():
        entry = {"python": table.get("python", "3.11"), "workloads": ["@torch"], **given}
        entry["name"] = f"torch-{version}"
        entry["packages"] = [f"torch=={version}", "torchvision", *entry.pop("with", [])]
        entries.append(entry)
    return entries


def expanded(environment: Environment, sets: dict[str, list[str]], path: pathlib.Path) -> list[str]:
    names: list[str] = []
    for name in environment.workloads:
        if not name.startswith("@"):
            names.append(name)
        elif name[1:] in sets:
            names += sets[name[1:]]
        else:
            raise Mistake(f"{path}: {environment.name} names the set {name}, which [sets] does not have")
    return names
