"""Load on a server of a collector: small closed runs, a prediction from their costs, then the runs that it is about."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from capplan.calibration.evidence.load_tests import LoadTestRow
from capplan.calibration.evidence.microbenchmarks import MicrobenchRow
from capplan.lab.collectors.cassandra_load import (
    OTHERS,
    Run,
    doubt_cells,
    doubts,
    idle_cores,
    latency_columns,
    pause,
)
from capplan.lab.collectors.collector import Collected, Progress, Settings, Timed
from capplan.lab.collectors.measurement import load
from capplan.lab.collectors.measurement.exchanges import mean_interval
from capplan.lab.collectors.measurement.load import PARTS, Request, Sample, Servers
from capplan.lab.collectors.measurement.machine import (
    cores,
    cpu_error_s,
    cpu_quantum_s,
    machine,
    quantum_row,
)
from capplan.lab.collectors.measurement.steadiness import WarmUp, warm_up
from capplan.lab.collectors.servers.prediction import (
    MEASURED,
    PREDICTED,
    Costs,
    costs_of,
    predicted_latency_s,
    predicted_throughput_per_s,
)
from capplan.lab.processes import Process
from capplan.models.errors import InputError

_WINDOW_S = 1.0


@dataclass(frozen=True)
class Expectation:
    """What the model says of a kind of request before it is measured: a multiple of another kind's CPU, and why."""

    kind: str
    server: str
    times: float
    reason: str


@dataclass(frozen=True)
class Subject:
    """A server that a collector measures.

    Attributes
    ----------
    name : str
        Name of the collector.
    system, version : str
        What the server is.
    servers : mapping of str to Process
        Its processes by the part that they play.
    kinds : mapping of str to Request
        What is asked of it, by name; each is measured in turn.
    conditions : str
        What all figures depend on, in words.
    expected : mapping of str to Expectation
        By kind of request, what the model says of its CPU beforehand.
    """

    name: str
    system: str
    version: str
    servers: Mapping[str, Process]
    kinds: Mapping[str, Request]
    conditions: str
    expected: Mapping[str, Expectation] = field(default_factory=dict)


async def measure(subject: Subject, settings: Settings, progress: Progress) -> Collected:
    """Measure every kind of request: warm up, run fewer clients, predict, run the most clients and open loads.

    Raises
    ------
    InputError
        If the server answers nothing.
    """
    servers = Servers(tuple(subject.servers.values()))
    idle = await idle_cores(servers)
    measured: dict[str, _Measured] = {}
    for kind in subject.kinds:
        measured[kind] = await _Load(subject, kind, settings, progress, servers, idle).measured(measured)
    every = tuple(measured.values())
    runs = [(each.of, run) for each in every for run in each.runs]
    remarks = [f"{each.of.kind}: {remark}" for each in every for remark in each.remarks]
    for doubt in dict.fromkeys(doubt for _, run in runs for doubt in doubts(run.sample)):
        names = [of.run_id(run) for of, run in runs if doubt in doubts(run.sample)]
        remarks.append(f"{doubt} ({', '.join(names)})")
    return Collected(
        tuple(row for each in every for row in each.load_tests),
        (*(row for each in every for row in each.parts), quantum_row(subject.name)),
        tuple(of.timed(run) for of, run in runs),
        tuple(remarks),
    )


@dataclass(frozen=True)
class _Measured:
    """A kind of request: its runs, its rows, and what the smaller runs cost."""

    of: _Load
    runs: tuple[Run, ...]
    load_tests: tuple[LoadTestRow, ...]
    parts: tuple[MicrobenchRow, ...]
    remarks: tuple[str, ...]
    cpu_s: Mapping[str, float]


@dataclass(frozen=True)
class _Load:
    """Measures one kind of request."""

    subject: Subject
    kind: str
    settings: Settings
    progress: Progress
    servers: Servers
    idle: float

    @property
    def request(self) -> Request:
        return self.subject.kinds[self.kind]

    async def measured(self, before: Mapping[str, _Measured]) -> _Measured:
        """Measure, in the order in which a prediction stays one."""
        warm = await self._warm_up()
        expected = list(self._expected(before))
        small = [await self._closed(clients) for clients in self._fewer]
        cpu_s = self._cpu_s(small[-1].sample)
        costs = _costs(small, sum(cpu_s.values()))
        pairs = [pair async for pair in self._predicted_runs(costs)]
        runs = [*small, *(run for run, _, _ in pairs)]
        parts = [row for run in runs for row in self._cost_rows(run, warm)]
        parts += [*expected, *self._as_expected(cpu_s), *(row for _, *rows in pairs for row in rows)]
        return _Measured(
            self,
            tuple(runs),
            tuple(self._row(run, warm) for run in runs),
            tuple(parts),
            tuple(self._remarks(warm, runs, [_error(predicted, measured) for _, predicted, measured in pairs])),
            cpu_s,
        )

    @property
    def _fewer(self) -> tuple[int, ...]:
        """Clients of the runs whose costs the prediction uses."""
        return self.settings.clients[:-1] or self.settings.clients

    async def _predicted_runs(self, costs: Costs) -> AsyncIterator[tuple[Run, MicrobenchRow, MicrobenchRow]]:
        """Predict each of the other runs, make it, and yield it with what was said and what was seen."""
        most = self.settings.clients[-1]
        ceiling = predicted_throughput_per_s(costs, cores(), most)
        if most not in self._fewer:
            run = await self._closed(most)
            yield run, self._said(run, ceiling), self._seen(run)
        for number, share in enumerate(self.settings.shares):
            rate = float(f"{share * ceiling:.3g}")
            latency_s = predicted_latency_s(costs, cores(), rate)
            run = await self._open(rate, number)
            yield run, self._said(run, latency_s), self._seen(run)

    def _remarks(self, warm: WarmUp, runs: Sequence[Run], errors: Sequence[str]) -> Iterator[str]:
        yield warm.sentence
        if errors:
            fewer = " and ".join(map(str, self._fewer))
            others = max(each.sample.others_cores for each in runs)
            busy = f"; other programs used up to {others:.1f} of {cores()} cores, which the model does not know"
            yield (
                f"predictions from the costs with {fewer} clients, over what was measured then: {', '.join(errors)}"
                f"{busy if others > OTHERS * cores() else ''}"
            )

    async def _warm_up(self) -> WarmUp:
        async def window(seconds: float) -> float:
            self.progress(f"{self.kind}: warming up until a request costs the same", 0, 1)
            clients = max(self.settings.clients)
            found = await load.closed(self.request, clients, seconds, self.settings.requests, self.servers)
            self._refuse_nothing(found)
            return sum(found.server_cpu_s) / found.completed

        return await warm_up(window, _WINDOW_S, self.settings.warm_up_s)

    async def _closed(self, clients: int) -> Run:
        self.progress(f"{self.kind}: {clients} closed clients", 0, 1)
        await pause()
        asked = self.settings
        sample = await load.closed(self.request, clients, asked.duration_s, asked.requests, self.servers)
        self._refuse_nothing(sample)
        return Run(f"closed-{clients}", clients, None, 1, sample)

    async def _open(self, rate: float, number: int) -> Run:
        self.progress(f"{self.kind}: {rate:,.0f} requests/s", 0, 1)
        await pause()
        asked = self.settings
        starts = load.arrivals(rate, asked.duration_s, asked.requests, asked.seed + number)
        sample = await load.paced(self.request, starts, self.servers)
        self._refuse_nothing(sample)
        return Run(f"open-{rate:.0f}", None, rate, 1, sample)

    def _refuse_nothing(self, sample: Sample) -> None:
        if sample.completed == 0:
            raise InputError(
                f"{self.subject.system} answered no {self.kind} in {sample.duration_s:.3g} s: give a longer --duration"
            )

    def run_id(self, run: Run) -> str:
        """Return the name of a run among all collections."""
        return f"{self.subject.name}-{self.kind.replace(' ', '-')}-{run.name}"

    def timed(self, run: Run) -> Timed:
        """Return all latencies of a run."""
        sample = run.sample
        return Timed(self.run_id(run), sample.began_s, sample.began_s + sample.duration_s, sample.histogram())

    def _cpu_s(self, sample: Sample) -> dict[str, float]:
        """Return the CPU of a request at each server; what the only one needs without load is taken off."""
        return {
            name: max(cpu - (self.idle if len(self.servers.nodes) == 1 else 0.0) * sample.duration_s, 0.0)
            / max(sample.completed, 1)
            for name, cpu in zip(self.subject.servers, sample.server_cpu_s, strict=True)
        }

    def _expected(self, before: Mapping[str, _Measured]) -> Iterator[MicrobenchRow]:
        """Yield what the model says of this kind's CPU, before it is measured."""
        if said := self.subject.expected.get(self.kind):
            value = said.times * before[said.kind].cpu_s[said.server]
            row = self._part(None, PREDICTED, "cpu_time")
            operation = f"{self.kind}, {said.server}"
            yield replace(row, operation=operation, statistic="mean", value=value, unit="s", note=said.reason)

    def _as_expected(self, cpu_s: Mapping[str, float]) -> Iterator[MicrobenchRow]:
        if said := self.subject.expected.get(self.kind):
            row = self._part(None, MEASURED, "cpu_time")
            operation = f"{self.kind}, {said.server}"
            yield replace(row, operation=operation, statistic="mean", value=cpu_s[said.server], unit="s")

    def _said(self, run: Run, prediction: float) -> MicrobenchRow:
        fewer = " and ".join(map(str, self._fewer))
        note = f"made before the run, from the costs with {fewer} closed clients"
        return replace(self._mean(run, PREDICTED), value=prediction, note=note)

    def _seen(self, run: Run) -> MicrobenchRow:
        values = _throughputs(run.sample) if run.offered_per_s is None else _mean_latencies(run.sample)
        value, low, high = mean_interval(values)
        return replace(self._mean(run, MEASURED), value=value, error_low=max(low, 0.0), error_high=high)

    def _mean(self, run: Run, component: str) -> MicrobenchRow:
        """Return the row of what a run shows: throughput if it is closed, latency if it is open."""
        closed = run.offered_per_s is None
        row = self._part(run, component, "throughput" if closed else "latency")
        return replace(row, statistic="mean", unit="1/s" if closed else "s")

    def _cost_rows(self, run: Run, warm: WarmUp) -> Iterator[MicrobenchRow]:
        """Yield the CPU of a request at the servers together, at each of several, and at the generator."""
        sample, whole = run.sample, run.sample.parts_with_requests
        error_s = PARTS * cpu_error_s() / max(sample.completed, 1)
        idle_s = self.idle * sample.duration_s / PARTS
        said = "; ".join((f"step of the CPU clock {1000 * cpu_quantum_s():.2g} ms", warm.sentence, *doubts(sample)))
        ends = {
            "server": ([(each.server_cpu_s - idle_s) / each.completed for each in whole], error_s),
            "load generator": ([each.client_cpu_s / each.completed for each in whole], 0.0),
        }
        for component, (values, error) in ends.items():
            mean, low, high = mean_interval(values, error)
            row = self._part(run, component, "cpu_time")
            interval = {"error_low": max(low, 0.0), "error_high": high}
            yield replace(row, statistic="mean", value=mean, unit="s", note=said, **interval)  # type: ignore[arg-type]  # floats
        if len(self.subject.servers) > 1:
            for name, value in self._cpu_s(sample).items():
                yield replace(self._part(run, name, "cpu_time"), statistic="mean", value=value, unit="s", note=said)

    def _part(self, run: Run | None, component: str, quantity: str) -> MicrobenchRow:
        operation, samples = self.kind, None
        if run is not None:
            how = _clients(run.clients or 0) if run.offered_per_s is None else f"{run.offered_per_s:,.0f}/s"
            operation, samples = f"{self.kind}, {how}", run.sample.completed
        return MicrobenchRow(
            run_id=self.subject.name if run is None else self.run_id(run),
            system=self.subject.system,
            version=self.subject.version,
            host=machine(),
            component=component,
            operation=operation,
            quantity=quantity,
            samples=samples,
            conditions=self.subject.conditions,
            source=f"capplan collect {self.subject.name}",
        )

    def _row(self, run: Run, warm: WarmUp) -> LoadTestRow:
        """Return a run as a row of a load-test table."""
        sample = run.sample
        free_s = len(sample.server_cpu_s) * cores() * sample.duration_s
        shared = f"{cores()} cores shared by the server and the load generator"
        return LoadTestRow(
            run_id=self.run_id(run),
            repeat=run.repeat,
            system=self.subject.system,
            version=self.subject.version,
            node_cores=float(cores()),
            load_kind="closed" if run.offered_per_s is None else "open",
            clients=run.clients,
            think_time_ms=None if run.clients is None else 0.0,
            offered_tps=run.offered_per_s,
            duration_s=sample.duration_s,
            request_class=self.kind,
            throughput_tps=sample.throughput_per_s,
            node_cpu_percent=min(100.0, 100 * sum(sample.server_cpu_s) / free_s),
            client_cpu_percent=sample.client_percent,
            drops=0,
            errors=sample.errors,
            one_host=True,
            source=f"capplan collect {self.subject.name}",
            note="; ".join((shared, self.subject.conditions, warm.sentence, *doubts(sample))),
            **doubt_cells(sample),
            **latency_columns(sample),
        )


def _costs(runs: Sequence[Run], server_s: float) -> Costs:
    """Return what a request takes: CPU with the most of these clients, and with the fewest the time beside CPU."""
    return costs_of(runs[0].sample, runs[0].clients or 1, runs[-1].sample, server_s)


def _clients(count: int) -> str:
    return f"{count} client" if count == 1 else f"{count} clients"


def _throughputs(sample: Sample) -> list[float]:
    """Return the throughput of each part; of the whole run if it ended before its parts did."""
    part_s = sample.duration_s / PARTS
    found = [each.completed / part_s for each in sample.parts]
    return found if len(found) == PARTS and all(found) else [sample.throughput_per_s]


def _mean_latencies(sample: Sample) -> list[float]:
    """Return the mean latency of each fifth of a run's requests: neighbours share what disturbs them."""
    return [float(each.mean()) for each in np.array_split(sample.latencies_s, PARTS) if len(each)]


def _error(predicted: MicrobenchRow, measured: MicrobenchRow) -> str:
    """Return by how much a prediction is off, in words."""
    said, seen = predicted.value or 0.0, measured.value or 0.0
    run = (measured.operation or "").rpartition(", ")[2]
    low, high = measured.error_low or 0.0, measured.error_high or 0.0
    noise = " (within its noise)" if low <= said <= high else ""
    return f"{measured.quantity} with {run} {100 * (said / seen - 1):+.0f} %{noise}"
