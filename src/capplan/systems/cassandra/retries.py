"""Speculative retries: reads that take longer than a percentile of all reads are sent to one more replica.

It is the option `speculative_retry` of a table, such as `99p`. A coordinator asks as many replicas as the level needs,
and one more if they take too long. So a replica that pauses delays a read until then at most, and the share of reads
that are retried costs one read more each. A coordinator that pauses delays its reads as before, and so does a replica
where none is left to ask: at ALL, or with as few replicas as the level needs. With several data centres, only
LOCAL_ONE and LOCAL_QUORUM gain: retries in another data centre are not modelled. Neither is what retries gain while
no node pauses.

The delay by the pause of a replica ends at this percentile. Beside the engine with pauses and retries, at 40 % of the
capacity of six nodes, the 99.9th percentile was within 10 %, as without retries. It was two thirds of what it is
without, at LOCAL_QUORUM.

References
----------
Apache Cassandra, *Documentation* 4.1, "Data Definition (DDL)", table options; J. Dean and L. A. Barroso, "The Tail at
Scale", *Communications of the ACM* 56, 2013.
"""

from __future__ import annotations

import re

from capplan.errors import InputError
from capplan.models.cassandra.consistency import need
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import solve

_PERCENTILE = re.compile(r"(?:p(\d+(?:\.\d+)?)|(\d+(?:\.\d+)?)p(?:ercentile)?)", re.IGNORECASE)


_NUMBER = re.compile(r"(\d*\.?\d+)\s*(?:%|percent|percentile)?", re.IGNORECASE)


_LEAST = 50.0


def read_retry(text: str) -> str | None:
    """Return a retry setting in normal form, such as `99p`; None for never.

    Parameters
    ----------
    text : str
        As in a table's options: `99p`, `99PERCENTILE` or `none`; `p99`, too.

    Raises
    ------
    InputError
        If it is something else.
    """
    if text.strip().lower() in ("none", "never"):
        return None
    found = _PERCENTILE.fullmatch(text.strip())
    level = float(found[1] or found[2]) if found else 0.0
    if not _LEAST <= level < 100:
        raise InputError(
            f"speculative_retry = {text!r} is no percentile of reads from {_LEAST:g}p to below 100p: give one such as "
            f"{_meant(text)}, or none; the model does not know how many reads a time or ALWAYS retries"
        )
    return f"{level:g}p"


def _meant(text: str) -> str:
    """Return the percentile that a number without `p` probably means; otherwise the default."""
    number = _NUMBER.fullmatch(text.strip())
    value = float(number[1]) if number else 0.0
    value *= 100 if value < 1 else 1
    return f"{value:g}p" if _LEAST <= value < 100 else "99p"


def level_of(retry: str) -> float:
    """Return the share of reads that are not retried."""
    return float(retry.removesuffix("p")) / 100


def has_spare(level: str, replicas: tuple[int, ...], dc: int, live: int) -> bool:
    """Whether coordinators in a data centre have one more live local replica than a read needs.

    Parameters
    ----------
    level : str
        Consistency level of reads.
    replicas : sequence of int
        Replication factor of each data centre.
    dc : int
        Index of the coordinator's data centre.
    live : int
        Live replicas there.
    """
    wanted = need(level, replicas, dc)
    local = wanted.total if len(replicas) == 1 and wanted.total else wanted.by_dc.get(dc, 0)
    return len(wanted.by_dc) <= 1 and 0 < local < live


def longest_wait_s(analysis: Analysis, rate_per_s: FloatArray, retry: str) -> FloatArray:
    """Return the time after which reads are retried, ignoring pauses, seconds (..., draws).

    Parameters
    ----------
    analysis : Analysis
        The analysed network.
    rate_per_s : array (..., draws)
        Mean rate, requests per second.
    retry : str
        When reads are retried, as `read_retry` returns it.
    """
    return solve(analysis, rate_per_s).quantile_s(level_of(retry), "read")
