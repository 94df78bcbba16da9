"""The error that bad input raises, and suggestions for its message."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from typing import TypeVar, cast

T = TypeVar("T")
Name = TypeVar("Name", bound=str)


class InputError(ValueError):
    """An error in the user's input.

    The message is one sentence: the value, the rule, the nearest valid value and the next step. The command line prints
    it and exits with code 2.
    """


class RefusedError(InputError):
    """A construct or feature that this part of capplan does not support; the message names it."""


class CrowdedError(RefusedError):
    """More is in progress at once in a simulation than its memory may hold: the load is far above the capacity."""


class MissingError(InputError):
    """A missing optional part of capplan; the message says how to install it."""


def check_extra(extra: str, *packages: str, instead: str = "") -> None:
    """Refuse what needs an extra of capplan, if one of its packages is missing.

    Parameters
    ----------
    extra : str
        Name of the extra.
    *packages : str
        Names by which they are imported.
    instead : str
        What else the user may do.

    Raises
    ------
    MissingError
        If one is not installed.
    """
    for name in packages:
        if find_spec(name) is None:
            raise MissingError(
                f"{name} is not installed: in a clone, `uv sync --inexact --extra {extra}` installs it; from a wheel, "
                f"`pip install './capplan-VERSION-py3-none-PLATFORM.whl[{extra}]'`{instead}"
            )


class Notice(UserWarning):
    """A fact that users should know but that does not change the answer; the command line prints it on stderr."""


def look_up(known: Mapping[str, T], name: str, refusal: str) -> T:
    """Return what a name stands for; refuse an unknown one as `one_of` does."""
    return known[one_of(known, name, refusal)]


def one_of(known: Collection[Name], name: str, refusal: str) -> Name:
    """Return a known name; refuse an unknown one with a sentence that ends in the nearest known name."""
    if name not in known:
        raise InputError(f"{refusal}{nearest(name, known)}")
    return cast("Name", name)


def nearest(word: str, known: Iterable[str]) -> str:
    """Suggest the known word closest to a misspelt one.

    Parameters
    ----------
    word : str
        The unknown word.
    known : iterable of str
        The valid words.

    Returns
    -------
    str
        The end of a sentence: `; did you mean 'x'?`, `; known: x, y` if no word is close, or empty if none is known.
    """
    options = sorted(known)
    close = closest(word, options)
    if close is not None:
        return f"; did you mean {close!r}?"
    return "; known: " + ", ".join(options) if options else ""


def closest(word: str, options: Sequence[str]) -> str | None:
    """Return the option closest to a misspelt word; None if none is close."""
    cased = [option for option in options if option.casefold() == word.casefold()]
    begun = [option for option in options if len(word) > 2 and option.casefold().startswith(word.casefold())]
    close = cased or get_close_matches(word, options, n=1, cutoff=0.5 if len(word) < 4 else 0.6) or begun
    return close[0] if close else None
