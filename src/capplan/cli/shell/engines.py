"""The option `--engine`: each verb knows some of the engines."""

from __future__ import annotations

from typing import TypeVar

from capplan.models.errors import InputError, nearest

E = TypeVar("E", bound=str)


def chosen_engine(name: str, known: tuple[E, ...], refusal: str) -> E:
    """Return the engine of a name, typed as the verb's engines are.

    Parameters
    ----------
    name : str
        As it was typed.
    known : tuple of str
        The engines of the verb.
    refusal : str
        What another engine fails to do, such as `does not sweep`.

    Raises
    ------
    InputError
        If the verb has no such engine.
    """
    found = next((each for each in known if each == name), None)
    if found is None:
        raise InputError(f"engine {name!r} {refusal}{nearest(name, known)}")
    return found
