"""Messages on stderr: text from users cannot forge a line, and long work shows a sign of life."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

from capplan.visible_text import short, visible

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
    """Replace characters that a stream cannot encode with an ASCII spelling or an escape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_IN_ASCII.get(each) or each.encode("ascii", "backslashreplace").decode() for each in text), error.end


codecs.register_error(ERRORS, _replaced)


PATIENCE_S = 2.0
AGAIN_S = 60.0


_under_way: list[tuple[Callable[[], str], Callable[[], bool]]] = []  # its state in words; whether a bar shows it
_ended = Event()


@contextmanager
def under_way(words: Callable[[], str], on_screen: Callable[[], bool]) -> Iterator[None]:
    """Describe in words the work inside the block, to print if it takes long."""
    _under_way.append((words, on_screen))
    try:
        yield
    finally:
        _under_way.pop()


@contextmanager
def sign_of_life(what: str) -> Iterator[None]:
    """Print the current work on stderr when the block takes longer than two seconds, then again every minute."""
    _ended.clear()
    Thread(target=_tell, args=(what,), daemon=True).start()
    try:
        yield
    finally:
        _ended.set()


def no_more_signs() -> None:
    """Stop printing signs of life: what runs now does not end by itself and has said so."""
    _ended.set()


def _tell(what: str) -> None:
    patience = PATIENCE_S
    while not _ended.wait(patience):
        patience = AGAIN_S
        now = _under_way[-1:]
        if not any(on_screen() for _, on_screen in now):
            say(next((words() for words, _ in now), f"{what} is still at work") + " ...")
