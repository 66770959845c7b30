"""Converts a configuration to one `maya run`: its arguments, environment, files and cluster.

Two configurations with the same plan are the same trial and run once. Two whose plans differ only in figures of the
cluster (links, prices, host) share one recording, which is simulated again for the second.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
from dataclasses import dataclass, field
from typing import Any, Mapping

from maya import MayaError
from maya.search.expression import Missing
from maya.search.serving import PORT
from maya.search.space import Space
from maya.search.template import shown

# Figures that are visible to the running program and therefore change the recording.
_SEEN_BY_THE_PROGRAM = ("gpu.",)


class PlanError(MayaError):
    """A configuration that cannot be written as a command."""


@dataclass(frozen=True)
class Plan:
    words: tuple[str, ...]  # with `{file}` marks where a written file's path goes
    environment: Mapping[str, str]
    files: Mapping[str, str]  # file name → content
    marks: Mapping[str, str] = field(default_factory=dict)  # mark in the words → file name
    cluster: str = "dgx-h100"
    settings: tuple[tuple[str, str], ...] = ()
    gpu: str = ""  # name of the GPU if the cluster is known; clusters with the same GPU can share a recording
    serving: tuple[str, ...] = ()  # options of `maya serve-bench`; none: `maya run`

    def recording_key(self) -> str:
        if self.serving:  # what a client reads belongs to the cluster that it was read on
            return self.key()
        return self._recorded()

    def _recorded(self) -> str:
        seen = [pair for pair in self.settings if pair[0].startswith(_SEEN_BY_THE_PROGRAM)]
        return _hash(
            [self.words, sorted(self.environment.items()), sorted(self.files.items()), self.gpu or self.cluster, seen]
        )

    def key(self) -> str:
        return _hash([self._recorded(), self.cluster, sorted(self.settings), *([self.serving] if self.serving else ())])

    def command(self, folder: pathlib.Path) -> list[str]:
        """The words, with the paths of the files written to `folder`."""
        paths = {mark: str(folder / name) for mark, name in self.marks.items()}
        words = []
        for word in self.words:
            for mark, path in paths.items():
                word = word.replace(mark, path)
            words.append(word)
        return words


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:20]


def _flag_words(flag: str, value: Any) -> list[str]:
    if value is True:
        return [flag.rstrip("=")] if flag.endswith("=") else [flag]
    if value is False or value is None:
        return []
    if isinstance(value, tuple):
        return [flag, *map(shown, value)]
    return [flag + shown(value)] if flag.endswith("=") else [flag, shown(value)]


def flags(space: Space, values: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    for flag, expression in space.flags.items():
        try:
            words += _flag_words(flag, expression.value(values))
        except Missing:
            continue  # the configuration does not have this parameter
    return words


def make(space: Space, values: Mapping[str, Any], gpu_of: Any = None) -> Plan:
    """The plan of a configuration. `gpu_of(cluster)`: the name of its GPU, where known."""
    marks = {f"\0{name}\0": file.file_name for name, file in space.files.items()}
    filled = dict(values) | {name: f"\0{name}\0" for name in space.files}
    if space.serving:
        filled[PORT] = f"{{{PORT}}}"
    words: list[str] = []
    placed = False
    try:
        for template in space.command:
            if template.text.strip() == "{flags}":
                words += flags(space, filled)
                placed = True
            else:
                words.append(template.fill(filled))
        if not placed:
            words += flags(space, filled)
        environment = {name: template.fill(filled) for name, template in space.environment.items()}
        files = {file.file_name: file.template.fill(values) for file in space.files.values()}
        cluster = space.cluster_name.fill(values)
        if space.cluster_nodes:
            cluster = f"{cluster.split(':')[0]}:{shown(space.cluster_nodes.value(values))}"
        settings = tuple((key, template.fill(values)) for key, template in space.cluster_set.items())
        options = tuple(space.serving.words(values)) if space.serving else ()
    except MayaError as problem:
        raise PlanError(f"{space.label(values)}: {problem}") from None
    return Plan(tuple(words), environment, files, marks, cluster, settings, gpu_of(cluster) if gpu_of else "",
                options)
