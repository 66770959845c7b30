"""Text with placeholders: `--tp {tp}` in commands, `{{ tp }}` in files (their own braces stay as they are)."""

from __future__ import annotations

import re
from typing import Any, Callable, Mapping

from maya import MayaError
from maya.search.expression import Expression, ExpressionError

_WORD = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_FILE = re.compile(r"\{\{(.*?)\}\}", re.S)


class TemplateError(MayaError):
    """A placeholder that cannot be read or filled."""


def shown(value: Any) -> str:
    """A value as it stands in a command: `true` and `false` as most programs write them."""
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, float) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return str(value)


class Template:
    """A text whose placeholders are expressions over the space."""

    def __init__(self, text: str, file: bool = False, show: Callable[[Any], str] = shown):
        self.text, self.show = text, show
        self.parts: list[str | Expression] = []
        end = 0
        for match in (_FILE if file else _WORD).finditer(text):
            self.parts.append(text[end:match.start()])
            end = match.end()
            if not file and match[0] in ("{{", "}}"):
                self.parts.append(match[0][0])
                continue
            if match[1] is None:
                raise TemplateError(
                    f"a brace without its partner in `{text}`; a brace of the text itself is written twice"
                )
            try:
                self.parts.append(Expression(match[1]))
            except ExpressionError as problem:
                hint = "" if file else "; a brace of the text itself is written twice"
                raise TemplateError(f"placeholder {match[0]}: {problem}{hint}") from None
        self.parts.append(text[end:])

    @property
    def names(self) -> frozenset:
        return frozenset().union(*(p.names for p in self.parts if isinstance(p, Expression)))

    def fill(self, values: Mapping[str, Any]) -> str:
        return "".join(p if isinstance(p, str) else self.show(p.value(values)) for p in self.parts)
