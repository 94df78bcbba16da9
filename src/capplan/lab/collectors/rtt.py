"""The round trip between data centres, and within one, as exchanges over a connection see it."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.calibration.evidence.microbenchmarks import MicrobenchRow
from capplan.lab.collectors.cassandra_load import running_lab
from capplan.lab.collectors.collector import Collected, Progress, Settings
from capplan.lab.collectors.measurement.exchanges import connect, echo_times_s, mean_interval, quantiles
from capplan.lab.collectors.measurement.machine import machine
from capplan.lab.layout import ECHO_PORT, Node
from capplan.models.errors import InputError

_MESSAGE = b"x" * 100
_MOST = 300  # of 40 ms each: 12 s
_TIME_S = 10.0
_FIRST = 5  # that warm the connection up


def collect(settings: Settings, progress: Progress) -> Collected:
    """Measure round trips.

    Raises
    ------
    InputError
        If no lab with two data centres runs.
    """
    lab = running_lab()
    if not lab.layout.delayed:
        raise InputError("the lab has one data centre: start one with 'capplan lab up --dcs 2 --rtt 20ms'")
    count = min(settings.requests, _MOST, max(20, round(_TIME_S / max(lab.rtt_s, 1e-3))))
    first = [each for each in lab.layout.nodes if each.number == 1]
    rows = list(_rows(first[0].address, first[0], f"within dc{first[0].dc}", "without the proxy", count))
    for done, node in enumerate(first, start=1):
        progress(f"to dc{node.dc}", done, len(first))
        asked = f"{1000 * lab.rtt_s:g} ms asked for"
        rows += _rows(node.broadcast, node, f"to dc{node.dc}", asked, count)
    middle = [row.value or 0.0 for row in rows if row.statistic == "p50"]
    remark = f"{1000 * lab.rtt_s:g} ms were asked for, and half of the exchanges took up to {1000 * middle[-1]:.3g} ms"
    return Collected(microbenchmarks=tuple(rows), remarks=(remark,))


def _rows(address: str, node: Node, where: str, conditions: str, count: int) -> Iterator[MicrobenchRow]:
    with connect(address, ECHO_PORT) as connection:
        echo_times_s(connection, _MESSAGE, _FIRST)
        times = echo_times_s(connection, _MESSAGE, count)
    mean, low, high = mean_interval(times)
    for statistic, value in [("mean", mean), *quantiles(times)]:
        yield MicrobenchRow(
            run_id=f"rtt-{node.name}-{address}",
            system="lab",
            host=machine(),
            component="link",
            operation=f"exchange {where}",
            quantity="latency",
            statistic=statistic,  # type: ignore[arg-type]  # a word of the Literal
            value=value,
            unit="s",
            samples=len(times),
            error_low=low if statistic == "mean" else None,
            error_high=high if statistic == "mean" else None,
            conditions=f"{len(_MESSAGE)} B there and back, {conditions}",
            source="capplan collect rtt",
            note="the echo of the lab's proxy, without Cassandra",
        )
