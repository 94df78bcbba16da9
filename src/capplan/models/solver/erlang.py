"""Erlang's loss (B) and delay (C) formulas and their inverses, for any number of servers and arrays of loads."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capplan.models.errors import InputError
from capplan.models.language.units import FloatArray, check_number


def checked(value: ArrayLike, what: str, at_least: float = 0.0, above: float | None = None) -> FloatArray:
    """Turn an argument of a closed form into an array of finite numbers within bounds.

    Parameters
    ----------
    value : number or array
        The argument.
    what : str
        What it is, for the message ("service time").
    at_least, above : float
        Inclusive and strict lower bound.

    Returns
    -------
    array of float64, of the shape of `value`.

    Raises
    ------
    InputError
        An element is not a finite number within the bounds.
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
    """Turn a count (servers, population) into an array of whole numbers from `at_least` up; raise `InputError`."""
    array = checked(value, what, at_least)
    if (array != np.floor(array)).any():
        raise InputError(f"{array[array != np.floor(array)].flat[0]:g} is not a {what}: it must be a whole number")
    return array


def probability(value: ArrayLike, what: str) -> FloatArray:
    """Turn an argument into an array of probabilities below one (0 allowed); raise `InputError`."""
    array = checked(value, what)
    if (array >= 1).any():
        raise InputError(f"{array.max():g} is not a {what}: it must be below 1")
    return array


def erlang_b(servers: ArrayLike, offered_load: ArrayLike) -> FloatArray:
    """Erlang's loss formula: the share of Poisson arrivals that find all servers busy and are lost.

    Parameters
    ----------
    servers : whole number or array
        Servers, at least 0; broadcast against `offered_load`.
    offered_load : number or array
        Arrival rate times mean service time, in erlangs.

    Returns
    -------
    array
        Blocking probability, M/G/c/c (insensitive to the law of service).

    Raises
    ------
    InputError
        A server count is not a whole number from 0 up, or a load is negative.

    Notes
    -----
    The forward recursion ``B(n) = a B(n-1) / (n + a B(n-1))`` (Cooper 1981, section 3.3) has only positive terms:
    it keeps full relative precision for thousands of servers and any load. The cost is one array operation a server.
    """
    count, load = np.broadcast_arrays(
        whole(servers, "number of servers", 0), checked(offered_load, "load (arrival rate times service time)")
    )
    blocking = np.ones(count.shape)
    for n in range(1, int(count.max(initial=0)) + 1):
        carried = load * blocking
        np.divide(carried, n + carried, out=blocking, where=n <= count)
    return blocking


def erlang_c(servers: ArrayLike, offered_load: ArrayLike) -> FloatArray:
    """Erlang's delay formula: the share of Poisson arrivals that must wait in M/M/c.

    Parameters
    ----------
    servers : whole number or array
        Servers, at least 1; broadcast against `offered_load`.
    offered_load : number or array
        Arrival rate times mean service time, in erlangs.

    Returns
    -------
    array
        Probability of waiting; 1 where the load reaches the number of servers.

    Raises
    ------
    InputError
        A server count is not a whole number from 1 up, or a load is negative.

    Notes
    -----
    ``C = c B / (c - a + a B)`` (Kleinrock 1975, section 3.5); written so, no digits cancel when a is near c.
    """
    count = whole(servers, "number of servers", 1)
    load = checked(offered_load, "load (arrival rate times service time)")
    return _delay_from_loss(erlang_b(count, load), count, load)


def _delay_from_loss(blocking: FloatArray, servers: FloatArray | float, load: FloatArray) -> FloatArray:
    """Erlang C from Erlang B; 1 where the load reaches the number of servers."""
    spare = np.maximum(servers - load, 0.0)
    busy = np.where(spare > 0, servers * blocking, 1.0)
    return np.asarray(busy / np.where(spare > 0, spare + load * blocking, 1.0))


def erlang_b_servers(offered_load: ArrayLike, blocking: ArrayLike) -> FloatArray:
    """Smallest number of servers (at least 1) whose Erlang B is at most `blocking`.

    Parameters
    ----------
    offered_load : number or array
        Erlangs.
    blocking : number or array
        Allowed blocking probability, above 0 and below 1; broadcast against `offered_load`.

    Returns
    -------
    array
        Whole numbers (as float64).

    Raises
    ------
    InputError
        A load is negative, or a probability is not between 0 and 1.
    """
    return _smallest_servers(offered_load, blocking, "blocking probability", delay=False)


def erlang_c_servers(offered_load: ArrayLike, waiting: ArrayLike) -> FloatArray:
    """Smallest number of servers whose Erlang C (probability of waiting) is at most `waiting`.

    Parameters
    ----------
    offered_load : number or array
        Erlangs.
    waiting : number or array
        Allowed probability of waiting, above 0 and below 1; broadcast against `offered_load`.

    Returns
    -------
    array
        Whole numbers (as float64), each above the load.

    Raises
    ------
    InputError
        A load is negative, or a probability is not between 0 and 1.
    """
    return _smallest_servers(offered_load, waiting, "waiting probability", delay=True)


def _smallest_servers(offered_load: ArrayLike, target: ArrayLike, what: str, delay: bool) -> FloatArray:
    """Walk the recursion for Erlang B up to the first server count that meets every target."""
    load, goal = np.broadcast_arrays(
        checked(offered_load, "load (arrival rate times service time)"),
        probability(checked(target, what, above=0.0), what),
    )
    servers, blocking, n = np.zeros(load.shape), np.ones(load.shape), 0
    while (servers == 0).any():
        n += 1
        blocking = load * blocking / (n + load * blocking)
        reached = _delay_from_loss(blocking, n, load) if delay else blocking
        servers = np.where((servers == 0) & (reached <= goal), n, servers)
    return servers
