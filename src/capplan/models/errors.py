"""The one error that a user's input can raise, and the nearest right thing to suggest."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """A value from outside breaks a rule.

    The message is one sentence that names the value, the rule, the nearest right thing and the next step;
    the command line prints it and exits with code 2.
    """


class RefusedError(InputError):
    """A construct or feature that this part of capplan refuses by name rather than treating it as something else."""


class MissingError(InputError):
    """A part of capplan that is not installed; the message says how to get it."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Suggest the known word closest to `word`, as `; did you mean 'x'?`, or list a few known words."""
    options = sorted(known)
    cased = [option for option in options if option.casefold() == word.casefold()]
    close = cased or get_close_matches(word, options, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    return "; known: " + ", ".join(options) if options else ""
