"""What a live validation answers: each predicted figure beside the measured one, with a verdict."""

from __future__ import annotations

import json
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
