"""Text of users: what terminals and spreadsheets act on is refused in names and escaped in output."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

LONGEST_NAME = 200
LONGEST_RUN, LONGEST_TEXT = 400, 2000
_FORMULA = ("=", "+", "-", "@")
# C0 and C1 controls, DEL, line and paragraph separators, marks that change the direction of text or take no room,
# surrogates (bytes of paths that are no text), and tags.
_ACTIVE = (
    "\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f"
)
_ESCAPED = re.compile(f"[{_ACTIVE}]")
_ESCAPED_IN_LINES = re.compile(f"(?!\n)[{_ACTIVE}]")
_RUN = re.compile(rf"\S{{{LONGEST_RUN + 1},}}")


def visible(text: str, *, lines: bool = False) -> str:
    r"""Return a text with every character escaped that a terminal would act on or not show, such as `\x1b`.

    Parameters
    ----------
    text : str
        The text.
    lines : bool
        Whether ends of lines stay.
    """
    pattern = _ESCAPED_IN_LINES if lines else _ESCAPED
    return pattern.sub(_escape, text) if pattern.search(text) else text


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    short = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}.get(match[0])
    return short or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


def short(text: str) -> str:
    """Shorten a text in the middle if it is too long to read: words to 400 characters, texts to 2,000."""
    cut = _RUN.sub(lambda match: _cut(match[0], LONGEST_RUN), text)
    return _cut(cut, LONGEST_TEXT)


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    start, end = most // 4, most // 8
    return f"{text[:start]}[... {len(text) - start - end:,} characters ...]{text[-end:]}"


@lru_cache(maxsize=4096)  # solving builds the same network many times
def broken_name_rule(name: str) -> str | None:
    """Return the rule of names that a text breaks, as the end of a sentence; None for a valid name."""
    if not name.strip():
        return "must not be empty"
    if len(name) > LONGEST_NAME:
        return f"must have at most {LONGEST_NAME} characters, and has {len(name):,}"
    hidden = next((each for each in name if _ESCAPED.match(each) or unicodedata.category(each) == "Cn"), None)
    if hidden is not None:
        return f"must have no character that is not shown, such as {visible(hidden)}"
    if name.startswith(_FORMULA):
        return f"must not begin with {name[0]!r}, which begins a formula in spreadsheets"
    return None


def cell(text: str) -> str:
    """Return a text that no spreadsheet reads as a formula; text that looks like one gets an apostrophe in front."""
    return f"'{text}" if text.lstrip("'").startswith((*_FORMULA, "\t", "\r")) else text


def from_cell(text: str) -> str:
    """Return the text of a cell; the inverse of `cell`."""
    return text[1:] if text.startswith("'") and cell(text) != text else text
