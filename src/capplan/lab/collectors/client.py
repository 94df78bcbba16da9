"""The load generator's own ceiling: without a server, and with the driver in front of the lab."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from capplan.calibration.evidence.microbenchmarks import MicrobenchRow
from capplan.lab import state
from capplan.lab.collectors.cassandra_load import Target, connect, create_table, running_lab, servers_of
from capplan.lab.collectors.cassandra_write import write_request
from capplan.lab.collectors.collector import Collected, Progress, Settings
from capplan.lab.collectors.measurement import load
from capplan.lab.collectors.measurement.exchanges import mean_interval
from capplan.lab.collectors.measurement.load import Sample
from capplan.lab.collectors.measurement.machine import machine, quantum_row

_RATES = (0.02, 0.1)  # at which lateness is measured, as shares of the ceiling
_WARM_UP_S = 1.0
_EMPTY, _BATCHES = 10_000, 5


def collect(settings: Settings, progress: Progress) -> Collected:
    """Measure the generator; with the driver, too, if a lab runs."""
    progress("without a server", 0, 2)
    rows = load.run(_alone(settings))
    remarks = ["the generator alone makes requests that are answered at once"]
    if state.read() is None:
        remarks.append("no lab runs, so the driver was not measured: 'capplan lab up' starts one")
    else:
        progress("with the driver", 1, 2)
        rows += load.run(_with_driver(settings))
    return Collected(microbenchmarks=(*rows, quantum_row("client")), remarks=tuple(remarks))


async def _alone(settings: Settings) -> list[MicrobenchRow]:
    async def answered(number: int) -> None:
        del number
        await asyncio.sleep(0)

    count = min(settings.requests, _EMPTY)
    batches = [await load.paced(answered, np.zeros(count)) for _ in range(_BATCHES + 1)][1:]
    costs = [each.thread_cpu_s / each.completed for each in batches]
    conditions = f"{count:,} requests that are due at once and answered at once"
    rows = list(_ceiling(costs, costs, "no server", conditions, _BATCHES * count))
    for share in _RATES:
        rate = share / fmean(costs)
        starts = load.arrivals(rate, settings.duration_s, settings.requests, settings.seed)
        rows += _lateness(await load.paced(answered, starts), rate)
    return rows


async def _with_driver(settings: Settings) -> list[MicrobenchRow]:
    lab = running_lab()
    create_table(lab, settings.row_bytes)
    cql = await connect(lab)
    target = Target(lab, cql, servers_of(lab))
    request = await write_request(target, replace(settings, level="LOCAL_ONE"))
    clients = max(settings.clients)
    await load.closed(request, clients, _WARM_UP_S, settings.requests)
    found = await load.closed(request, clients, settings.duration_s, settings.requests, target.servers)
    await cql.close()
    parts = found.parts_with_requests
    threads = [each.thread_cpu_s / each.completed for each in parts]
    all_threads = [each.client_cpu_s / each.completed for each in parts]
    conditions = f"closed, {clients} clients, acsylla, {settings.row_bytes} B rows"
    return list(_ceiling(threads, all_threads, "write", conditions, found.completed))


def _ceiling(
    threads: Sequence[float], all_threads: Sequence[float], operation: str, conditions: str, samples: int
) -> Iterator[MicrobenchRow]:
    """Yield the CPU of a request, and the rate at which the thread of the event loop would be busy all the time."""
    shared = MicrobenchRow(
        run_id="client",
        system="capplan",
        host=machine(),
        component="load generator",
        operation=operation,
        statistic="mean",
        samples=samples,
        conditions=conditions,
        source="capplan collect client",
    )
    for quantity, values in (("thread_time", threads), ("cpu_time", all_threads)):
        mean, low, high = mean_interval(values)
        yield replace(shared, quantity=quantity, value=mean, unit="s", error_low=max(low, 0.0), error_high=high)
    mean, low, high = mean_interval(threads)
    yield replace(
        shared,
        quantity="ceiling",
        value=1 / mean,
        unit="1/s",
        error_low=1 / high,
        error_high=1 / low if low > 0 else None,
        note="requests per second at which its thread is always busy; a load test must stay below four fifths of it",
    )


def _lateness(found: Sample, rate: float) -> Iterator[MicrobenchRow]:
    for statistic, share in (("p50", 0.5), ("p99", 0.99)):
        yield MicrobenchRow(
            run_id="client",
            system="capplan",
            host=machine(),
            component="load generator",
            operation=f"no server, {rate:,.0f}/s",
            quantity="lateness",
            statistic=statistic,  # type: ignore[arg-type]  # a word of the Literal
            value=float(np.quantile(found.lateness_s, share)),
            unit="s",
            samples=len(found.lateness_s),
            conditions=f"open, {rate:.3g} requests/s, answered at once",
            source="capplan collect client",
            note="from the intended start to the sending",
        )
