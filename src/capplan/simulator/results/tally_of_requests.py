"""The tally of single requests: the plain reading of what its columns say, and so the check of what engines count."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from capplan.models.language.network import Network
from capplan.simulator.results.histogram import IntArray, bin_of
from capplan.simulator.results.run import Requests, Status
from capplan.simulator.results.tally import (
    ACTUAL,
    INTENDED,
    LATENCY,
    LONGEST_ACTUAL,
    LONGEST_INTENDED,
    NUMBER,
    PAIR_BITS,
    RESPONSE,
    RETRIES,
    STARTED,
    Tally,
    empty_tally,
    overlaps,
)

_LOW = (1 << PAIR_BITS) - 1


def tally_of_requests(requests: Requests, network: Network, boundaries: IntArray) -> Tally:
    """Return what an engine should have counted of these requests; stations and pools are left at zero."""
    tally = empty_tally(network, boundaries)
    started = _interval(requests.start_ticks, boundaries)
    _count_series(requests, started, tally)
    _count_totals(requests, started, tally)
    _count_number(requests, tally)
    _count_latencies(requests, started, tally)
    return tally


def _interval(ticks: IntArray, boundaries: IntArray) -> IntArray:
    return np.asarray(np.searchsorted(boundaries, ticks, side="right") - 1, dtype=np.int64)


def _count_series(requests: Requests, started: IntArray, tally: Tally) -> None:
    series, ended = tally.class_series, _interval(requests.end_ticks, tally.boundaries)
    np.add.at(series[:, :, STARTED], (started, requests.request_class), 1)
    rows = requests.status != Status.UNFINISHED
    np.add.at(series, (ended[rows], requests.request_class[rows], requests.status[rows]), 1)
    rows = requests.status == Status.COMPLETED
    latency = (requests.end_ticks - requests.intended_ticks)[rows]
    np.add.at(series[:, :, LATENCY], (ended[rows], requests.request_class[rows]), latency)


def _count_totals(requests: Requests, started: IntArray, tally: Tally) -> None:
    totals, classes = tally.class_totals, requests.request_class
    np.add.at(totals[:, :, STARTED], (started, classes), 1)
    ended = requests.status != Status.UNFINISHED
    np.add.at(totals, (started[ended], classes[ended], requests.status[ended]), 1)
    np.add.at(totals[:, :, RETRIES], (started[ended], classes[ended]), requests.attempts[ended] - 1)
    response = (requests.end_ticks - requests.start_ticks)[ended]
    _add_pairs(totals, RESPONSE, (started[ended], classes[ended]), response)


def _count_number(requests: Requests, tally: Tally) -> None:
    ends = np.where(requests.status == Status.UNFINISHED, tally.end_ticks, requests.end_ticks)
    rows = zip(requests.request_class.tolist(), requests.start_ticks.tolist(), ends.tolist(), strict=True)
    number = np.zeros(tally.class_totals.shape[:2], dtype=object)  # of Python's integers, which never overflow
    for request_class, start, end in rows:
        for interval, ticks in overlaps(tally.boundaries, start, end):
            number[interval, request_class] += ticks
    tally.class_totals[:, :, NUMBER] = number >> PAIR_BITS
    tally.class_totals[:, :, NUMBER + 1] = number & _LOW


def _count_latencies(requests: Requests, started: IntArray, tally: Tally) -> None:
    rows = requests.status == Status.COMPLETED
    places = started[rows], requests.request_class[rows]
    for clock in range(tally.histograms.shape[2]):
        since = (requests.intended_ticks, requests.start_ticks)[clock]
        latency = (requests.end_ticks - since)[rows]
        _add_pairs(tally.class_totals, (INTENDED, ACTUAL)[clock], places, latency)
        np.maximum.at(tally.class_totals[:, :, (LONGEST_INTENDED, LONGEST_ACTUAL)[clock]], places, latency)
        np.add.at(tally.histograms, (*places, np.full(len(latency), clock), bin_of(latency)), 1)


def _add_pairs(totals: IntArray, column: int, places: tuple[NDArray[np.int64], ...], values: IntArray) -> None:
    low = np.zeros(totals.shape[:2], dtype=np.int64)
    np.add.at(totals[:, :, column], places, values >> PAIR_BITS)
    np.add.at(low, places, values & _LOW)
    low += totals[:, :, column + 1]
    totals[:, :, column] += low >> PAIR_BITS
    totals[:, :, column + 1] = low & _LOW
