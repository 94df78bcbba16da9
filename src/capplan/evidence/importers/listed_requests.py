"""Requests that a tool lists one by one: their latencies by class, and the time in which they were under way.

A file may list many millions. Latencies are counted by value, and times are merged to intervals as they come.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from capplan.errors import InputError
from capplan.evidence.importers.importer import run_names
from capplan.evidence.load_test_row import ALL, PERCENTILES, LoadTestRow
from capplan.evidence.text_file import TextFile

COLUMNS = ("line", "start_s", "end_s", "ms", "label", "failed", "answered", "code", "threads")
"""What a reader tells of each request."""
_MOST_CLASSES = 50
_MOST_INTERVALS = 100_000
_NAMED_GAP = 0.1  # of a run
_NAMED_BACK_S = 1.0  # tools write some lines together, and in any order
_RESTART_S = 1.0  # that a load generator needs at least to start again
_APART_S = 3600.0
_RARE = 50  # times the mean time between requests: no chance makes such a gap
_LATEST_S = 1e15


def time_s(text: str) -> float:
    """Return the seconds since 1970 of an ISO time with a fraction of any length; without a zone it is taken for UTC.

    Raises
    ------
    ValueError
        If it is none.
    """
    found = datetime.fromisoformat(text.strip())
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


class BusyTime:
    """When requests were under way, and whether their lines are in the order of time.

    Attributes
    ----------
    parts : ndarray of float (intervals, 6)
        Start and end of each interval, s; line and number of threads of its first request, threads of its last one; its
        most threads.
    count : int
        How many requests there were.
    """

    def __init__(self) -> None:
        self.parts: NDArray[np.float64] = np.empty((0, 6))
        self.count = 0
        self._apart_s, self._latest_s = 0.0, -np.inf
        self._back_s, self._back_line = 0.0, 0

    def add(self, starts_s: ArrayLike, ends_s: ArrayLike, lines: ArrayLike, threads: ArrayLike = 0) -> None:
        """Add some requests, in the order of their lines."""
        columns = np.broadcast_arrays(starts_s, ends_s, lines, threads, threads, threads)
        parts = np.stack(columns, axis=1).astype(np.float64)
        parts = parts[np.abs(parts[:, :2]).max(axis=1) < _LATEST_S]  # a damaged file may have any number
        if not len(parts):
            return
        latest_s = np.maximum.accumulate(np.append(self._latest_s, parts[:, 1]))
        back_s = latest_s[:-1] - parts[:, 1]
        if back_s.max() > self._back_s:
            self._back_s, self._back_line = float(back_s.max()), int(parts[back_s.argmax(), 2])
        self._latest_s = latest_s[-1]
        self.count += len(parts)
        self.parts = _merged(np.concatenate([self.parts, parts]), self._apart_s)
        while len(self.parts) > _MOST_INTERVALS:
            self._apart_s = max(2 * self._apart_s, 1e-6 * self.span_s)
            self.parts = _merged(self.parts, self._apart_s)

    @property
    def span_s(self) -> float:
        """Time from the first start to the last end, s."""
        return float(self.parts[-1, 1] - self.parts[0, 0]) if len(self.parts) else 0.0

    @property
    def _gaps_s(self) -> NDArray[np.float64]:
        """Time without a request after each interval but the last, s."""
        return self.parts[1:, 0] - self.parts[:-1, 1]

    def restart(self) -> int | None:
        """Return the line from which on, after a gap, a second run begins.

        Threads end one after the other and start one after the other, so that there are few around the gap. A gap of
        hours that is most of the time is between two runs, whatever the threads do.
        """
        least_s = min(_NAMED_GAP * self.span_s, max(_RESTART_S, _RARE * self.span_s / max(self.count, 1)))
        around, most = np.minimum(self.parts[:-1, 4], self.parts[1:, 3]), self.parts[:, 5]
        both = np.minimum(np.maximum.accumulate(most)[:-1], np.maximum.accumulate(most[::-1])[::-1][1:])
        apart = self._gaps_s > max(_APART_S, self.span_s / 2)
        places = np.flatnonzero((self._gaps_s > least_s) & (around < both) | apart)
        return int(self.parts[places[0] + 1, 2]) if len(places) else None

    def remarks(self) -> Iterator[str]:
        """Yield what is odd about the times."""
        places = np.flatnonzero(self._gaps_s > _NAMED_GAP * self.span_s)
        if len(places):
            listed = ", ".join(
                f"{self._gaps_s[each]:.3g} s before line {self.parts[each + 1, 2]:.0f}" for each in places
            )
            yield f"nothing was under way for {listed}, of {self.span_s:.4g} s: the rate is that of the whole time"
        if self._back_s > min(_NAMED_BACK_S, _NAMED_GAP * self.span_s):
            yield (
                f"line {self._back_line} is {self._back_s:.3g} s earlier than one before it: requests are taken by "
                "their times, not by their order"
            )


def _merged(parts: NDArray[np.float64], apart_s: float) -> NDArray[np.float64]:
    """Return the intervals that parts make together."""
    parts = parts[np.argsort(parts[:, 0], kind="stable")]
    ends = np.maximum.accumulate(parts[:, 1])
    first = np.flatnonzero(np.append(True, parts[1:, 0] > ends[:-1] + apart_s))
    found = parts[first]
    found[:, 1] = np.append(ends[first[1:] - 1], ends[-1])
    found[:, 4] = parts[np.append(first[1:], len(parts)) - 1, 4]
    found[:, 5] = np.maximum.reduceat(parts[:, 5], first)
    return found


@dataclass
class Requests:
    """What is known of the requests of a class.

    A request that got no answer is in neither rate nor latency; one with an answer that the tool counts as failed is in
    both.
    """

    latencies_ms: Counter[float] = field(default_factory=Counter)
    failed: int = 0
    unanswered: int = 0
    codes: Counter[tuple[str, bool]] = field(default_factory=Counter)  # of odd answers, and whether they failed

    def add(self, batch: pd.DataFrame) -> None:
        """Add requests with `COLUMNS`."""
        answered = batch[batch["answered"]]
        values, counts = np.unique(answered["ms"].to_numpy(), return_counts=True)
        self.latencies_ms.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        self.failed += int(batch["failed"].sum())
        self.unanswered += len(batch) - len(answered)
        if answered.empty:
            return
        odd = answered[answered["failed"] | answered["code"].str.match(r"[45]\d\d$")]
        self.codes.update(zip(odd["code"], odd["failed"].map(bool), strict=True))

    def latencies(self, method: Literal["inverted_cdf", "linear"]) -> dict[str, Any]:
        """Return the columns of latencies; a tool's percentile is one of the values, or between two of them."""
        if not self.latencies_ms:
            return {}
        values, counts = (np.array(each) for each in zip(*sorted(self.latencies_ms.items()), strict=True))
        ends, shares = counts.cumsum(), np.array(list(PERCENTILES.values()))
        if method == "inverted_cdf":
            percentiles = values[np.searchsorted(ends, shares * ends[-1])]
        else:
            ranks = np.column_stack([ends - counts, ends - 1]).ravel()
            percentiles = np.interp(shares * (ends[-1] - 1), ranks, values.repeat(2))
        return {
            "latency_mean_ms": float(values @ counts / ends[-1]),
            **dict(zip(PERCENTILES, percentiles.tolist(), strict=True)),
            "latency_max_ms": float(values[-1]),
        }

    def note(self) -> str | None:
        """Return which answers count as failed, and which do not."""
        said = []
        for failed, counts_as in ((True, "failed"), (False, "good")):
            if codes := {code: count for (code, bad), count in self.codes.items() if bad == failed}:
                listed = ", ".join(f"{count:,} with {code or 'no code'}" for code, count in sorted(codes.items()))
                said.append(f"answered, in rate and latency, and counted as {counts_as}: {listed}")
        if self.unanswered:
            said.append(f"not answered, and in neither rate nor latency: {self.unanswered:,}")
        return "; ".join(said) or None


def together(parts: Iterable[Requests]) -> Requests:
    """Return the requests of several classes."""
    found = Requests()
    for each in parts:
        found.latencies_ms.update(each.latencies_ms)
        found.codes.update(each.codes)
        found.failed += each.failed
        found.unanswered += each.unanswered
    return found


class ListedRun:
    """One run of a tool that lists its requests.

    Attributes
    ----------
    first_line : int
        Where it begins in the file.
    classes : dict of str to Requests
        The requests by class; all together if there are too many classes.
    busy : BusyTime
        When they were under way.
    first_s, last_s : float
        The times between which the tool counts.
    clients : int
        The most threads or users.
    """

    def __init__(self, first_line: int) -> None:
        self.first_line, self.clients = first_line, 0
        self.classes: dict[str, Requests] = {}
        self.busy = BusyTime()
        self.first_s, self.last_s = np.inf, -np.inf
        self._many = False

    def add(self, batch: pd.DataFrame, counted_from: str = "start_s") -> None:
        """Add requests with `COLUMNS`, in the order of their lines.

        Parameters
        ----------
        batch : DataFrame
            The requests.
        counted_from : str
            Which time of the first request begins the run: `start_s`, or `end_s` if a tool knows ends only.
        """
        if batch.empty:
            return
        self.busy.add(batch["start_s"], batch["end_s"], batch["line"], batch["threads"])
        self.first_s = min(self.first_s, float(batch[counted_from].min()))
        self.last_s = max(self.last_s, float(batch["end_s"].max()))
        self.clients = max(self.clients, int(batch["threads"].max()))
        self.take(batch)
        gc.collect(0)  # groups refer back to their batch, which would stay for a hundred others

    def take(self, batch: pd.DataFrame) -> None:
        """Add what requests were, without their times."""
        for label, part in batch.groupby("label", sort=False) if not self._many else ((ALL, batch),):
            self.classes.setdefault(str(label), Requests()).add(part)
        if len(self.classes) > _MOST_CLASSES:
            self.classes, self._many = {ALL: together(self.classes.values())}, True

    @property
    def duration_s(self) -> float:
        """Time in which requests were counted, s."""
        return round(self.last_s - self.first_s, 6)

    def rows(
        self, path: Path, tool: str, name: str, method: Literal["inverted_cdf", "linear"] = "inverted_cdf"
    ) -> Iterator[LoadTestRow]:
        """Yield the row of all requests, and one for each class if there are several.

        Raises
        ------
        InputError
            If no request was answered.
        """
        parts = dict(sorted(self.classes.items()))
        if len(parts) > 1:
            parts = {ALL: together(parts.values()), **parts}
        if not next(iter(parts.values())).latencies_ms:
            raise InputError(
                f"{path}, line {self.first_line}: no request of the run was answered: it has no latency; find out why "
                "they failed"
            )
        for label, part in parts.items():
            yield LoadTestRow(
                run_id=name,
                request_class=label,
                duration_s=self.duration_s,
                throughput_tps=part.latencies_ms.total() / self.duration_s if self.duration_s else None,
                clients=self.clients or None,
                errors=part.failed,
                source=f"{path.name}: {tool}",
                note=part.note(),
                **part.latencies(method),
            )

    def remarks(self) -> Iterator[str]:
        """Yield what was left out, and what is odd about the times."""
        if self._many:
            yield f"more than {_MOST_CLASSES} labels are too many for a row each: only all requests together are taken"
        yield from self.busy.remarks()


Run = TypeVar("Run", bound=ListedRun)


def named_runs(file: TextFile, runs: Sequence[Run]) -> Iterator[tuple[str, Run]]:
    """Yield the runs of a file with their names.

    Raises
    ------
    InputError
        If a run has no request, or another begins in it.
    """
    for name, run in zip(run_names(file, [""] * len(runs)), runs, strict=True):
        if not run.classes:
            raise InputError(f"{file.path} has no samples from line {run.first_line} on: the run was interrupted there")
        if line := run.busy.restart():
            raise InputError(
                f"{file.path}, line {line}: after a time without requests a second run begins: put it into a file of "
                "its own"
            )
        yield name, run


def begun(runs: Sequence[ListedRun]) -> tuple[str, ...]:
    """Return a remark if a file has several runs."""
    lines = ", ".join(f"line {run.first_line}" for run in runs[1:])
    return (f"the file has {len(runs)} runs; the later ones begin at {lines}",) if lines else ()
