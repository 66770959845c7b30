"""search.html: a page by itself."""

from __future__ import annotations

import html as escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maya.search.result import SearchResult


def html(result: "SearchResult") -> str:
    return f"<pre>{escape.escape(result.summary())}</pre>"
