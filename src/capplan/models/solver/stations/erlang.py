"""Erlang's formulas B (blocking) and C (delay) for any number of servers and arrays of loads."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capplan.models.errors import InputError
from capplan.models.language.units import FloatArray, check_number

LOAD = "load (arrival rate times service time)"


def checked(value: ArrayLike, what: str, at_least: float = 0.0, above: float | None = None) -> FloatArray:
    """Turn an argument of a closed form into an array of finite numbers within bounds.

    Parameters
    ----------
    value : number or array
        The argument.
    what : str
        What the number is, for the message: `service time`.
    at_least, above : float
        Inclusive and strict lower bound.

    Returns
    -------
    array of float64
        With the shape of `value`.

    Raises
    ------
    InputError
        If an element is not a finite number within the bounds.
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{value!r} is not a {what}: give a number or an array of numbers") from None
    check_number(array, what, at_least, above)
    if np.isposinf(array).any():
        raise InputError(f"inf is not a {what}: give a finite number")
    return array


def whole(value: ArrayLike, what: str, at_least: int) -> FloatArray:
    """Turn a count into an array of whole numbers of at least `at_least`; raise `InputError` for anything else."""
    array = checked(value, what, at_least)
    if (array != np.floor(array)).any():
        raise InputError(f"{array[array != np.floor(array)].flat[0]:g} is not a {what}: it must be a whole number")
    return array


def probability(value: ArrayLike, what: str) -> FloatArray:
    """Turn an argument into an array of probabilities from 0, below 1; raise `InputError` for anything else."""
    array = checked(value, what)
    if (array >= 1).any():
        raise InputError(f"{array.max():g} is not a {what}: it must be below 1")
    return array


def erlang_b(servers: ArrayLike, offered_load: ArrayLike) -> FloatArray:
    """Return the probability that a Poisson arrival finds all servers busy and is blocked.

    Parameters
    ----------
    servers : whole number or array
        Number of servers, at least 0; broadcasts against `offered_load`.
    offered_load : number or array
        Arrival rate times mean service time, in erlangs.

    Returns
    -------
    array
        Blocking probability of M/G/c/c, whatever the distribution of service times.

    Raises
    ------
    InputError
        If a number of servers is not whole or negative, or a load is negative.

    Notes
    -----
    The recursion ``B(n) = a B(n-1) / (n + a B(n-1))`` has only positive terms. It keeps full relative precision for
    thousands of servers and any load, and costs one array operation per server.

    References
    ----------
    R. B. Cooper, *Introduction to Queueing Theory*, 2nd ed., North Holland, 1981, section 3.3.
    """
    count, load = np.broadcast_arrays(whole(servers, "number of servers", 0), checked(offered_load, LOAD))
    blocking = np.ones(count.shape)
    for n in range(1, int(count.max(initial=0)) + 1):
        blocked = load * blocking
        np.divide(blocked, n + blocked, out=blocking, where=n <= count)
    return blocking


def erlang_c(servers: ArrayLike, offered_load: ArrayLike) -> FloatArray:
    """Return the probability that an arrival waits in M/M/c.

    Parameters
    ----------
    servers : whole number or array
        Number of servers, at least 1; broadcasts against `offered_load`.
    offered_load : number or array
        Arrival rate times mean service time, in erlangs.

    Returns
    -------
    array
        Waiting probability; 1 where the load reaches the number of servers.

    Raises
    ------
    InputError
        If a number of servers is not whole or below 1, or a load is negative.

    Notes
    -----
    ``C = c B / (c - a + a B)``. In this form no digits cancel when a is near c.

    References
    ----------
    L. Kleinrock, *Queueing Systems*, vol. 1, Wiley, 1975, section 3.5.
    """
    count, load = whole(servers, "number of servers", 1), checked(offered_load, LOAD)
    blocking = erlang_b(count, load)
    spare = np.maximum(count - load, 0.0)
    busy = np.where(spare > 0, count * blocking, 1.0)
    return np.asarray(busy / np.where(spare > 0, spare + load * blocking, 1.0))
