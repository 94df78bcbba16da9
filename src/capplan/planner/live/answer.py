"""What a live validation answers: each predicted figure beside the measured one, with a verdict, and in words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

SCHEMA = "capplan.live-validation/1"
Verdict = Literal["within threshold", "within repeat noise", "off", "not judged"]
Quantity = Literal["capacity", "p50", "p99", "added p50", "not found"]


@dataclass(frozen=True)
class LiveFigure:
    """A figure, predicted and then measured.

    Attributes
    ----------
    stage
        Short name of the cluster.
    cluster
        The cluster, in words.
    operation
        `read` or `write`; of sessions the request class `auth`, `start` or `update`, or `session` for all of them.
    level
        Consistency level; those of reads and of writes, joined by `and`, where a message has both and they differ.
    row_bytes
        Bytes of a row's value.
    tls
        Whether clients used TLS.
    rtt_ms
        Round trip that was asked for between data centres; null with one data centre.
    load
        The load, in words.
    clients
        Closed clients; null with open requests.
    offered_per_s
        Rate of open requests, or of sessions for `session`; null with closed clients.
    quantity
        `capacity`: throughput of the most clients, per second. `p50`, `p99`: latency, ms. `added p50`: median latency
        of one client beyond that at LOCAL_ONE, ms. `not found`: sessions whose first message after the start found no
        row, per cent.
    unit
        `/s`, `ms` or `%`.
    predicted
        The prediction: its median.
    low
        5th percentile of what a repeat would measure.
    high
        95th percentile of the same.
    measured
        Mean of the repeats (of their logarithms, but for `added p50` and `not found`); null if none is believed.
    noise
        How far a further repeat may be from that mean, in 95 % of cases (Student's t), in the unit; null if there are
        fewer than two repeats.
    repeats
        Runs that are believed.
    error
        Predicted over measured, less 1; null if nothing was measured.
    threshold
        Error that is accepted.
    round_trips
        Added latency over the round trip, as it was measured by an echo; null elsewhere.
    verdict
        `within threshold`, `within repeat noise`, `off`, or `not judged`.
    reason
        Why it is not judged, or what else must be known.
    """

    stage: str
    cluster: str
    operation: str
    level: str
    row_bytes: int
    tls: bool
    rtt_ms: float | None
    load: str
    clients: int | None
    offered_per_s: float | None
    quantity: Quantity
    unit: str
    predicted: float
    low: float
    high: float
    measured: float | None
    noise: float | None
    repeats: int
    error: float | None
    threshold: float
    round_trips: float | None
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class LiveValidation:
    """A live validation.

    Attributes
    ----------
    protocol
        Name of the protocol.
    one_host
        Whether all nodes and the load generator shared one machine.
    version
        Version of capplan.
    cassandra
        Release of Cassandra.
    machine
        The machine.
    predicted_at
        When the predictions were written, ISO 8601.
    measured_from
        When the first of the predicted runs began, ISO 8601.
    predictions
        The file with the predictions.
    sha256
        Its SHA-256.
    fitted_runs
        Runs that the model was calibrated from.
    left_out_runs
        Runs that were not believed, as the load generator was their bottleneck.
    disturbed_runs
        Runs during which other processes used more than a tenth of the CPU.
    audit
        What the audit found in the runs that the model was calibrated from.
    figures
        The figures.
    """

    protocol: str
    one_host: bool
    version: str
    cassandra: str
    machine: str
    predicted_at: str
    measured_from: str
    predictions: str
    sha256: str
    fitted_runs: int
    left_out_runs: int
    disturbed_runs: int
    audit: tuple[str, ...]
    figures: tuple[LiveFigure, ...]

    @property
    def answer(self) -> bool:
        """Whether figures were judged, and none is off."""
        return any(each.verdict != "not judged" for each in self.figures) and self.count("off") == 0

    def count(self, verdict: Verdict) -> int:
        """Return how many figures have a verdict."""
        return sum(each.verdict == verdict for each in self.figures)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON types; see `capplan.live-validation/1`."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return {"schema": SCHEMA, **found}


# In words, the same on the screen and on the page

USUAL_BYTES = 100
VERDICTS: Mapping[Verdict, str] = {
    "within threshold": "yes",
    "within repeat noise": "noise",
    "off": "OFF",
    "not judged": "-",
}
MESSAGES = {"auth": "authorizations", "update": "updates and stops"}
LEGEND = (
    "Capacity in requests/s, latencies, think and RTT in ms, sessions not found in per cent. Right: yes, within the "
    "threshold (capacity 10 %, p50 15 %, p99 30 % up to 80 % of the capacity, added p50 and not found 10 %); noise, "
    "within how far another repeat may be off; OFF, neither; -, not judged."
)
_HUNDRED, _TEN = 100, 10
_MOST_PERCENT = 999


def cells(figure: LiveFigure) -> tuple[str, ...]:
    """Return load, quantity, prediction, measurement, error and verdict of a figure."""
    return (
        load(figure),
        figure.quantity,
        f"{number(figure.predicted)} ({number(figure.low)}-{number(figure.high)})",
        measured(figure),
        "" if figure.error is None else _percent(100 * figure.error),
        VERDICTS[figure.verdict],
    )


def statement(figure: LiveFigure) -> str:
    """Return what clients ask, in words, such as `reads at LOCAL_ONE`."""
    parts = [f"{MESSAGES.get(figure.operation, f'{figure.operation}s')} at {figure.level}"]
    parts += [f"rows of {figure.row_bytes:,} B"] if figure.row_bytes != USUAL_BYTES else []
    parts += ["TLS"] if figure.tls else []
    return ", ".join(parts)


def load(figure: LiveFigure) -> str:
    """Return the load of a figure, in a few words."""
    return figure.load if figure.rtt_ms is None else f"{figure.load}, RTT {figure.rtt_ms:g}"


def measured(figure: LiveFigure) -> str:
    """Return what was measured, with the noise of a repeat."""
    if figure.measured is None:
        return ""
    if figure.noise is None or not figure.measured:
        return number(figure.measured)
    share = 100 * figure.noise / abs(figure.measured)
    return f"{number(figure.measured)} ± {f'{share:.0f} %' if share <= _MOST_PERCENT else 'any'}"


def _percent(value: float) -> str:
    return f"{value:+.0f} %" if abs(value) <= _MOST_PERCENT else f"x {1 + value / 100:.0f}"


def number(value: float) -> str:
    """Return a figure with two or three digits."""
    if abs(value) >= _HUNDRED:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= _TEN else f"{value:.2g}"


def round_trips(figures: Sequence[LiveFigure]) -> list[str]:
    """Return how many round trips each level waits for, as sentences."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in figures:
        if each.round_trips is not None:
            found.setdefault((each.operation, each.level), []).append(f"{each.round_trips:.2f} at {each.rtt_ms:g} ms")
    return [
        f"Round trips that a {operation} at {level} waits for: {', '.join(said)}."
        for (operation, level), said in found.items()
    ]


def sessions(figures: Sequence[LiveFigure]) -> list[str]:
    """Return what the figures of sessions are about, as sentences; none without any."""
    if not any(each.quantity == "not found" for each in figures):
        return []
    return [
        "A session has the eight messages of openprovider, each in the next data centre: an authorization (read), the "
        "start (write), five updates and the stop (read, then write). The rate is that of sessions.",
        "Think is the mean time from an answer to the next message, and latency counts from the end of that time. Not "
        "found: sessions whose first update found no row, as it came before the row did.",
        "The costs are those of the fitted runs. There are no RADIUS servers and no pool of workers.",
    ]


def reasons(figures: Sequence[LiveFigure]) -> list[str]:
    """Return why figures are not judged and what else must be known, each with the figures that it is for."""
    found: dict[str, list[str]] = {}
    for each in figures:
        if each.reason:
            found.setdefault(each.reason, []).append(f"{each.quantity} of {statement(each)}, {load(each)}")
    return [f"{reason[0].upper()}{reason[1:]} ({_few(names)})." for reason, names in found.items()]


def _few(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} figures, such as {names[0]}"
