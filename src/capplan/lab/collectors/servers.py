"""Servers that a collector starts without a lab: found, started in a folder of their own, loaded, and stopped again.

Small closed runs come first, then a forecast from their costs, then the runs that it is about. So a prediction stays
one.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from capplan.errors import InputError, MissingError
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.microbenchmarks import MicrobenchRow
from capplan.lab import processes
from capplan.lab.collectors.collector import Collected, Costs, Forecast, Progress, Settings
from capplan.lab.collectors.load import (
    OTHERS,
    PARTS,
    AwaitedTarget,
    Request,
    Run,
    Runner,
    Sample,
    Servers,
    clock_note,
    doubted,
    doubts,
    figure,
    idle_cores,
    load_in_words,
    mean_row,
    per_request,
    quantum_row,
    rounded,
)
from capplan.lab.collectors.load import run as in_event_loop
from capplan.lab.processes import PATIENCE_S, Process, cores, start_of

LOOPBACK = "127.0.0.1"
PREDICTED, MEASURED = "predicted", "measured"
"""Components of the rows of a prediction, and of the figure that it is about."""
_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/libexec")  # not on every user's path
# The shell ends its child when its own input ends, so also if the collector is killed.
_RUN = '"$@" </dev/null >>"$0" 2>&1 & echo $!; read word; kill $! 2>/dev/null; wait $!'
_START_S = 30.0
_ASK_EVERY_S = 0.02
_LAST_LINES = 3


def needed_program(names: Sequence[str], package: str) -> str:
    """Return the path of an installed program that the Linux distribution provides.

    Raises
    ------
    MissingError
        If there is none of these names.
    """
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_SYSTEM_FOLDERS))
    for name in names:
        if found := shutil.which(name, path=path):
            return found
    raise MissingError(
        f"{names[0]} is not installed: on Debian and Ubuntu, `apt-get install {package}` installs it; "
        "capplan starts a server of its own"
    )


def existing(folders: Sequence[str]) -> str | None:
    """Return the first existing folder; distributions install the same files in different folders."""
    return next((each for each in folders if Path(each).is_dir()), None)


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """Return a free loopback port."""
    with socket.socket(socket.AF_INET, kind) as tried:
        tried.bind((LOOPBACK, 0))
        return int(tried.getsockname()[1])


@contextmanager
def own_folder(name: str) -> Iterator[Path]:
    """Make a folder for a server's files; delete it at the end."""
    with TemporaryDirectory(prefix=f"capplan-{name}-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def version_of(program: str, option: str) -> str:
    """Return the version that a program prints."""
    done = subprocess.run([program, option], capture_output=True, text=True, check=False)  # noqa: S603  # a server's own
    words = (done.stderr or done.stdout).replace(",", " ").split()
    return next((each for each in words if each[:1].isdigit()), "")


def says(log: Path, words: str) -> bool:
    """Whether a log contains a text."""
    return log.exists() and words in log.read_text(encoding="utf-8", errors="replace")


@contextmanager
def running(name: str, command: Sequence[str], log: Path, ready: Callable[[], bool]) -> Iterator[Process]:
    """Run a server in the background; it ends with the context and, at the latest, with this process.

    Parameters
    ----------
    name : str
        What it is called.
    command : sequence of str
        The program, which stays in the foreground, and its arguments.
    log : Path
        The file that its output is added to.
    ready : function
        Whether it takes requests.

    Raises
    ------
    InputError
        If it ends before it is ready, or takes too long; the message has the last lines of its log.
    """
    with subprocess.Popen(  # noqa: S603  # a server of ours
        ["/bin/sh", "-c", _RUN, str(log), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # where the shell says that a server was terminated
        text=True,
        start_new_session=True,
    ) as shell:
        if shell.stdin is None or shell.stdout is None:
            raise AssertionError("pipes were asked for")
        pid = int(shell.stdout.readline())
        process = Process(pid, start_of(pid) or 0)
        try:
            deadline = time.monotonic() + _START_S
            while not (process.alive and ready()):
                if not process.alive or time.monotonic() > deadline:
                    what = "did not answer in time" if process.alive else "ended while it started"
                    raise InputError(f"{name} {what}; the last lines of its log: {_last_lines(log)}")
                time.sleep(_ASK_EVERY_S)
            yield process
        finally:
            shell.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                shell.wait(PATIENCE_S)
            processes.kill(process)


def _last_lines(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []
    return " | ".join([line.strip() for line in lines if line.strip()][-_LAST_LINES:]) or "it is empty"


# -- load


@dataclass(frozen=True)
class Expectation:
    """The model's prediction for a request kind before its measurement: a multiple of another kind's CPU, and why."""

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


def costs_of(few: Sample, clients: int, many: Sample, server_s: float) -> Costs:
    """Estimate the costs of a request from two closed runs.

    Parameters
    ----------
    few : Sample
        The run with the fewest clients, which shows the time beside CPU.
    clients : int
        Its clients.
    many : Sample
        The run with the most clients, which shows the generator's CPU.
    server_s : float
        CPU of a request at all servers in that run.
    """
    alone_s = (few.thread_cpu_s + sum(few.server_cpu_s)) / max(few.completed, 1)
    waited_s = float(few.latencies_s.mean()) / max(clients, 1) - alone_s
    return Costs(many.thread_cpu_s / max(many.completed, 1), server_s, max(waited_s, 0.0))


def measure(
    connected: AbstractAsyncContextManager[Subject], settings: Settings, progress: Progress, forecast: Forecast
) -> Collected:
    """Measure every kind of request: warm-up, few clients, prediction, then most clients and open loads.

    Raises
    ------
    InputError
        If the server answers nothing.
    """

    async def measured() -> Collected:
        async with connected as subject:
            return await _measured(subject, settings, progress, forecast)

    return in_event_loop(measured())


async def _measured(subject: Subject, settings: Settings, progress: Progress, forecast: Forecast) -> Collected:
    servers = Servers(tuple(subject.servers.values()))
    idle = await idle_cores(servers)
    total = len(settings.clients) + len(settings.shares)
    kinds: dict[str, _Kind] = {}
    for name, request in subject.kinds.items():
        unanswered = f"{subject.system} answered no {name} in {{:.3g}} s: give a longer --duration"
        runner = Runner(AwaitedTarget(servers, unanswered, request=request), settings, progress, total, f"{name}: ")
        its = _Kind(subject, name, runner, idle)
        await its.measure(forecast)
        its.expect(kinds)
        kinds[name] = its
    runs = [(each, run) for each in kinds.values() for run in each.runner.runs]
    remarks = [f"{each.kind}: {remark}" for each in kinds.values() for remark in each.remarks()]
    return Collected(
        tuple(of.row(run) for of, run in runs),
        (*(row for each in kinds.values() for row in each.parts()), quantum_row(subject.name)),
        tuple(run.timed(of.run_id(run)) for of, run in runs),
        (*remarks, *doubted((of.run_id(run), run.sample) for of, run in runs)),
    )


@dataclass
class _Kind:
    """One kind of request: its runs, its costs in the smaller runs, and predictions beside measurements."""

    subject: Subject
    kind: str
    runner: Runner
    idle: float
    warm: str = ""
    cpu_s: Mapping[str, float] = field(default_factory=dict)
    expected: tuple[MicrobenchRow, ...] = ()
    pairs: list[tuple[MicrobenchRow, MicrobenchRow]] = field(default_factory=list)

    async def measure(self, forecast: Forecast) -> None:
        """Measure in an order that keeps every prediction ahead of its measurement."""
        runner, asked = self.runner, self.runner.settings
        self.warm = (await runner.warm_up()).sentence
        small = [await runner.step(clients) for clients in self._fewer]
        self.cpu_s = self._cpu_s(small[-1].sample)
        costs = costs_of(small[0].sample, small[0].clients or 1, small[-1].sample, sum(self.cpu_s.values()))
        most = asked.clients[-1]
        ceiling = forecast.throughput_per_s(costs, cores(), most)
        if most not in self._fewer:
            self._compare(await runner.step(most), ceiling)
        for number, share in enumerate(asked.shares):
            rate = rounded(share * ceiling)
            said = forecast.latency_s(costs, cores(), rate)
            self._compare(await runner.step(None, rate, asked.seed + number), said)

    @property
    def _fewer(self) -> tuple[int, ...]:
        """Client counts of the runs that the prediction uses."""
        return self.runner.settings.clients[:-1] or self.runner.settings.clients

    def _compare(self, run: Run, prediction: float) -> None:
        """Record a prediction beside a run's result: throughput of a closed run, latency of an open one."""
        closed = run.offered_per_s is None
        cells = ("throughput", "1/s") if closed else ("latency", "s")
        part = replace(self._part(run, cells[0]), statistic="mean", unit=cells[1])  # type: ignore[arg-type]  # words of the Literal
        note = f"made before the run, from the costs with {self._said_fewer} closed clients"
        values = _throughputs(run.sample) if closed else _mean_latencies(run.sample)
        seen = mean_row(part, values, component=MEASURED, unit=part.unit)
        self.pairs.append((replace(part, component=PREDICTED, value=prediction, note=note), seen))

    @property
    def _said_fewer(self) -> str:
        return " and ".join(map(str, self._fewer))

    def _cpu_s(self, sample: Sample) -> dict[str, float]:
        """Return the CPU time per request at each server; with a single server, its idle CPU is subtracted."""
        idle_s = self.idle * sample.duration_s if len(self.subject.servers) == 1 else 0.0
        return {
            name: max(cpu - idle_s, 0.0) / max(sample.completed, 1)
            for name, cpu in zip(self.subject.servers, sample.server_cpu_s, strict=True)
        }

    def expect(self, before: Mapping[str, _Kind]) -> None:
        """Record the model's CPU prediction, from kinds measured before, beside the measurement."""
        if said := self.subject.expected.get(self.kind):
            part = replace(self._part(None, "cpu_time"), statistic="mean", unit="s")
            part = replace(part, operation=f"{self.kind}, {said.server}")
            value = said.times * before[said.kind].cpu_s[said.server]
            predicted = replace(part, component=PREDICTED, value=value, note=said.reason)
            self.expected = (predicted, replace(part, component=MEASURED, value=self.cpu_s[said.server]))

    def remarks(self) -> Iterator[str]:
        """Yield remarks for the reader."""
        yield self.warm
        if self.pairs:
            others = max(each.sample.others_cores for each in self.runner.runs)
            busy = f"; other programs used up to {others:.1f} of {cores()} cores, which the model does not know"
            yield (
                f"predictions from the costs with {self._said_fewer} clients, over what was measured then: "
                f"{', '.join(_error(*pair) for pair in self.pairs)}{busy if others > OTHERS * cores() else ''}"
            )

    def run_id(self, run: Run) -> str:
        """Return the name of a run, unique among all collections."""
        return f"{self.subject.name}-{self.kind.replace(' ', '-')}-{run.name}"

    def row(self, run: Run) -> LoadTestRow:
        """Return a run as a row of a load-test table."""
        shared = f"{cores()} cores shared by the server and the load generator"
        columns = {
            "run_id": self.run_id(run),
            "system": self.subject.system,
            "version": self.subject.version,
            "node_cores": float(cores()),
            "request_class": self.kind,
            "one_host": True,
            "source": f"capplan collect {self.subject.name}",
        }
        return run.row(columns, [shared, self.subject.conditions, self.warm])

    def parts(self) -> Iterator[MicrobenchRow]:
        """Yield the CPU of a request at all servers together, at each server, and at the generator; and predictions."""
        for run in self.runner.runs:
            cost, part = per_request(run.sample, self.idle), self._part(run, "cpu_time")
            said = "; ".join((clock_note(), self.warm, *doubts(run.sample)))
            yield mean_row(part, cost.servers, cost.error_s, component="server", note=said)
            yield mean_row(part, cost.client, component="load generator", note=said)
            if len(self.subject.servers) > 1:
                for name, value in self._cpu_s(run.sample).items():
                    yield replace(part, component=name, statistic="mean", value=value, unit="s", note=said)
        yield from self.expected
        for pair in self.pairs:
            yield from pair

    def _part(self, run: Run | None, quantity: str) -> MicrobenchRow:
        operation, samples = self.kind, None
        if run is not None:
            operation = f"{self.kind}, {load_in_words(run.clients, run.offered_per_s)}"
            samples = run.sample.completed
        its = self.subject
        row = figure(its.name, its.system, operation, version=its.version, conditions=its.conditions)
        run_id = its.name if run is None else self.run_id(run)
        return replace(row, run_id=run_id, quantity=quantity, samples=samples)


def _throughputs(sample: Sample) -> list[float]:
    """Return the throughput of each part; that of the whole run if some part is missing or empty."""
    found = [each.completed / each.length_s for each in sample.parts]
    return found if len(found) == PARTS and all(found) else [sample.throughput_per_s]


def _mean_latencies(sample: Sample) -> list[float]:
    """Return the mean latency of each fifth of a run's requests: neighbouring requests share disturbances."""
    return [float(each.mean()) for each in np.array_split(sample.latencies_s, PARTS) if len(each)]


def _error(predicted: MicrobenchRow, measured: MicrobenchRow) -> str:
    """Return the error of a prediction in words."""
    said, seen = predicted.value or 0.0, measured.value or 0.0
    run = (measured.operation or "").rpartition(", ")[2]
    low, high = measured.error_low or 0.0, measured.error_high or 0.0
    noise = " (within its noise)" if low <= said <= high else ""
    return f"{measured.quantity} with {run} {100 * (said / seen - 1):+.0f} %{noise}"
