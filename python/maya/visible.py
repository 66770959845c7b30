"""Makes text from files and other programs safe to print, as src/base/visible.h does for the program.

The name of a kernel, the label of a configuration or an error line may contain escape sequences that move the cursor,
set the title of the window or hide lines. They are replaced by printable text.
"""

from __future__ import annotations

import re

_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\x1b": "\\e"}
# Control characters, lone surrogates (bytes that were not UTF-8), and characters that are invisible or change the
# direction of text.
_HIDDEN = (
    "\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff"
)
_ANY = re.compile(f"[{_HIDDEN}]")
_BUT_LINE_FEEDS = re.compile(f"(?!\n)[{_HIDDEN}]")


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    point = ord(character)
    if character in _NAMED:
        return _NAMED[character]
    if 0xDC80 <= point <= 0xDCFF:
        return f"\\x{point - 0xDC00:02x}"  # a byte that was decoded with surrogateescape
    return f"\\x{point:02x}" if point < 0x80 else f"\\u{{{point:04x}}}"


def visible(text: str) -> str:
    """One line without control characters."""
    return _ANY.sub(_escaped, text)


def visible_lines(text: str) -> str:
    """The same for several lines: line feeds are kept."""
    return _BUT_LINE_FEEDS.sub(_escaped, text)
