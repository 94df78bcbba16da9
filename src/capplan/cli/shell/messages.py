"""Sentences on stderr: what users wrote is escaped and cut, so that nothing forges a line or floods a screen."""

from __future__ import annotations

import codecs
import sys
from contextlib import suppress

from capplan.models.visible_text import short, visible

_IN_ASCII = {
    "\N{MICRO SIGN}": "u",
    "\N{PLUS-MINUS SIGN}": "+-",
    "\N{MULTIPLICATION SIGN}": "x",
    "\N{MIDDLE DOT}": "*",
    "\N{EN DASH}": "-",
    "\N{EM DASH}": "-",
    "\N{HORIZONTAL ELLIPSIS}": "...",
    "\N{NO-BREAK SPACE}": " ",
    "\N{LESS-THAN OR EQUAL TO}": "<=",
    "\N{GREATER-THAN OR EQUAL TO}": ">=",
    "\N{SUPERSCRIPT TWO}": "^2",
}
ERRORS = "capplan"
"""Name of the error handler of streams that cannot show every character."""


def say(sentence: str) -> None:
    """Write one line to stderr, if it can be written."""
    with suppress(OSError):
        sys.stderr.write(f"capplan: {short(visible(sentence))}\n")
        sys.stderr.flush()


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Replace what a stream cannot encode by what it can: an ASCII spelling, or an escape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_IN_ASCII.get(each) or each.encode("ascii", "backslashreplace").decode() for each in text), error.end


codecs.register_error(ERRORS, _replaced)
