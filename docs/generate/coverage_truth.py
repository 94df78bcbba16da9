"""The true response times that intervals should contain: two closed forms, and a fork-join by a long recursion.

`uv run python docs/generate/coverage_truth.py` recomputes the constants of the fork-join (some four minutes). Nothing
here uses the engines or their output analysis, so both can be checked against it. Times are in mean service times.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from capplan.models.language.units import FloatArray

SEED, RUNS, JOBS, SETTLING = 2026, 100, 40_000_000, 65_536
CHUNK = 65_536  # jobs whose arrays stay in the processor's cache
BINS_PER_TIME, LONGEST = 1024, 256  # resolution of the histogram; the last bin takes all longer responses


@dataclass(frozen=True)
class Truth:
    """True mean and 99th percentile of a response time, in mean service times, with their standard errors."""

    mean: float
    p99: float
    mean_error: float = 0.0
    p99_error: float = 0.0


# second_of_three(0.7): 4e9 jobs. The standard errors are 0.007 % of the mean and 0.014 % of the percentile.
FORK_JOIN = Truth(2.982472, 11.750661, 0.000194, 0.001623)


def single(load: float) -> Truth:
    """M/M/1: the response time is exponential with mean ``1 / (1 - load)`` (Kleinrock 1975, section 3.2)."""
    mean = 1 / (1 - load)
    return Truth(mean, mean * math.log(100))


def farm(servers: int, load: float) -> Truth:
    """M/M/m, FCFS: the wait is positive with probability C (Erlang's formula), and then exponential.

    The tail is ``P(T > t) = (1 - C) e^-t + C (r e^-t - e^-rt) / (r - 1)`` with ``r = servers (1 - load)``, in mean
    service times; r may not be 1 (Kleinrock 1975, section 3.5).
    """
    rate, wait = servers * (1 - load), _erlang_c(servers, load)

    def tail(time: float) -> float:
        slow = (rate * math.exp(-time) - math.exp(-rate * time)) / (rate - 1)
        return (1 - wait) * math.exp(-time) + wait * slow

    longest = 40 / min(rate, 1.0)
    return Truth(1 + wait / rate, float(brentq(lambda time: tail(time) - 0.01, 0.0, longest, xtol=1e-13)))


def _erlang_c(servers: int, load: float) -> float:
    """Probability of waiting, from its definition."""
    offered = servers * load
    below = sum(offered**n / math.factorial(n) for n in range(servers))
    full = offered**servers / math.factorial(servers) / (1 - load)
    return full / (below + full)


def second_of_three(load: float, seed: int = SEED, runs: int = RUNS, jobs: int = JOBS) -> Truth:
    """Simulate the response time of the second answer from three single servers that all receive every job.

    Arrivals are Poisson, service times exponential and independent between servers. Each server serves all its jobs in
    order, also those that are no longer needed. Each run has its own stream, starts empty and leaves out its first
    `SETTLING` jobs. The standard errors come from the scatter between runs. A percentile comes from the histogram of
    all runs, linear within a bin.
    """
    means, counts = np.zeros(runs), np.zeros((runs, BINS_PER_TIME * LONGEST), dtype=np.int64)
    for run, stream in enumerate(np.random.SeedSequence(seed).spawn(runs)):
        means[run], counts[run] = _run(load, np.random.Generator(np.random.SFC64(stream)), jobs)
        if sys.stderr.isatty():
            print(f"\r{run + 1} of {runs} runs", end="", file=sys.stderr, flush=True)
    each = np.array([_quantile(row, 0.99) for row in counts])
    return Truth(
        float(means.mean()), _quantile(counts.sum(axis=0), 0.99), _standard_error(means), _standard_error(each)
    )


def _run(load: float, random: np.random.Generator, jobs: int) -> tuple[float, np.ndarray]:
    """Return the mean response and the histogram of one run."""
    backlogs, total, counts = np.zeros(3), 0.0, np.zeros(BINS_PER_TIME * LONGEST, dtype=np.int64)
    _, backlogs = _chunk(load, random, backlogs, SETTLING)
    for start in range(0, jobs, CHUNK):
        second, backlogs = _chunk(load, random, backlogs, min(CHUNK, jobs - start))
        total += float(second.sum())
        bins = np.minimum(second * BINS_PER_TIME, len(counts) - 1).astype(np.intp)
        counts += np.bincount(bins, minlength=len(counts))
    return total / jobs, counts


def _chunk(load: float, random: np.random.Generator, backlogs: FloatArray, jobs: int) -> tuple[FloatArray, FloatArray]:
    """Return the second of three responses of each job, and the backlog that the last job leaves at each server.

    Lindley (1952): a job waits for ``max(0, response of the job before - time since its arrival)``. With the running
    minimum of the unrestricted random walk, this needs no loop over jobs.
    """
    gaps, responses = random.standard_exponential(jobs) / load, []
    for left in backlogs:
        services = random.standard_exponential(jobs)
        walk = -gaps
        walk[0] += left
        walk[1:] += services[:-1]
        np.cumsum(walk, out=walk)
        walk -= np.minimum(np.minimum.accumulate(walk), 0.0)
        responses.append(walk + services)
    one, two, three = responses
    second = np.maximum(np.minimum(one, two), np.minimum(np.maximum(one, two), three))
    return second, np.array([response[-1] for response in responses])


def _quantile(counts: np.ndarray, level: float) -> float:
    below = np.cumsum(counts)
    wanted = level * below[-1]
    place = int(np.searchsorted(below, wanted))
    return float(place + 1 - (below[place] - wanted) / counts[place]) / BINS_PER_TIME


def _standard_error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values)))


if __name__ == "__main__":
    print(single(0.8), farm(4, 0.9), second_of_three(0.7), sep="\n")
