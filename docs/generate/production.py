"""A day of a cluster with known parameters as the history of a Prometheus server, and the tutorial that asks it.

`uv run python docs/generate/production.py` writes the outputs of docs/tutorials/your-production-metrics.md. It needs
the Debian package prometheus. The engine runs each half hour; its latencies fill the buckets of a histogram. The CPU of
the nodes follows `calibration/tables/node_cpu.py`. One client restarts at night, so that its counters begin at 0 again.
"""

from __future__ import annotations

import math
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from outputs import BLOCK, ROOT, _printed, agrees

from capplan.calibration.tables.node_cpu import cpu_percent
from capplan.models.language.parameter import defaults
from capplan.models.solver.analytic import Analysis
from capplan.simulator.engine import simulate
from capplan.systems.cassandra import SYSTEM
from capplan.systems.cassandra.priors import PARAMETERS
from capplan.systems.cassandra.scenario import CassandraScenario

PAGE = ROOT / "docs" / "tutorials" / "your-production-metrics.md"
FILE = ROOT / "docs" / "examples" / "production" / "monday.toml"
LAYOUT = CassandraScenario(
    cass_nodes=6,
    node_cores=8,
    rf=3,
    read_fraction=0.8,
    consistency_read="LOCAL_QUORUM",
    consistency_write="LOCAL_QUORUM",
)
TRUE = {
    **defaults(PARAMETERS),
    "coordinator_s": 0.12e-3,
    "read_s": 0.3e-3,
    "cpu_full": 0.94,
    "cpu_wake": 1.5,
    "cpu_poll": 0.7,
    "generator_s": 1e-6,
}
LOW, HIGH = 0.1, 0.4  # of the ceiling, at night and in the evening
BEGIN = datetime(2026, 11, 2, tzinfo=UTC)
DAY_S, HALF_HOUR_S, SCRAPE_S = 86_400, 1_800, 60
RESTART_S = 11_400
REQUESTS = 20_000  # of each half hour that are simulated
BOUNDS_S = tuple(float(f"{each:.3g}") for each in np.geomspace(0.2e-3, 0.2, 31))


@dataclass(frozen=True)
class HalfHour:
    """A rate (per second), the share of requests within each bound, the mean (s) and the CPU of the nodes (percent)."""

    rate_per_s: float
    within: Sequence[float]
    mean_s: float
    cpu_percent: float


def ceiling_per_s() -> float:
    """Return the rate at which the nodes are full."""
    return float(Analysis(SYSTEM.network(LAYOUT, TRUE, 1.0)).drift_per_s[0])


def half_hours() -> Iterator[HalfHour]:
    """Yield the half hours of the day, each by a run of the engine."""
    ceiling = ceiling_per_s()
    for number in range(DAY_S // HALF_HOUR_S):
        day = (1 - math.cos(2 * math.pi * (number / 48 - 1 / 6))) / 2
        rate = ceiling * (LOW + (HIGH - LOW) * day)
        run = simulate(
            SYSTEM.network(LAYOUT, TRUE, rate),
            1.2 * REQUESTS / rate,
            warmup_s=0.2 * REQUESTS / rate,
            seed=number,
            trace=True,
        )
        taken = np.concatenate([run.latencies_s(name) for name in run.reports])
        load = np.array([rate / ceiling])
        cpu = cpu_percent(TRUE, load, rate * taken.mean() * np.ones(1), LAYOUT.node_cores, woken=True)
        within = [float(np.mean(taken <= bound)) for bound in BOUNDS_S]
        yield HalfHour(rate, within, float(taken.mean()), float(cpu[0]))


def history() -> str:
    """Return all samples of the day in the OpenMetrics format."""
    done, total_s, idle_s = np.zeros(len(BOUNDS_S) + 1), 0.0, 0.0
    buckets: dict[str, list[str]] = {f"{bound:g}": [] for bound in BOUNDS_S} | {"+Inf": []}
    sums, counts, idle = [], [], []
    day = list(half_hours())
    for since_s in range(0, DAY_S + 1, SCRAPE_S):
        at = int(BEGIN.timestamp()) + since_s
        own = day[min(since_s // HALF_HOUR_S, len(day) - 1)]
        if since_s == RESTART_S:
            done, total_s = np.zeros(len(done)), 0.0
        for (bound, lines), count in zip(buckets.items(), done, strict=True):
            lines.append(f'db_request_seconds_bucket{{le="{bound}"}} {count:.0f} {at}')
        sums.append(f"db_request_seconds_sum {total_s:.6f} {at}")
        counts.append(f"db_request_seconds_count {done[-1]:.0f} {at}")
        idle.append(f'node_cpu_seconds_total{{mode="idle"}} {idle_s:.3f} {at}')
        done += np.rint(SCRAPE_S * own.rate_per_s * np.array([*own.within, 1.0]))
        total_s += SCRAPE_S * own.rate_per_s * own.mean_s
        idle_s += SCRAPE_S * (1 - own.cpu_percent / 100)
    lines = [each for own in buckets.values() for each in own] + sums + counts
    head, cpu = "# TYPE db_request_seconds histogram", "# TYPE node_cpu_seconds counter"
    return "\n".join([head, *lines, cpu, *idle, "# EOF", ""])


@contextmanager
def serving(text: str) -> Iterator[str]:
    """Serve a history on loopback, and return the address."""
    tool, server = shutil.which("promtool"), shutil.which("prometheus")
    if tool is None or server is None:
        raise RuntimeError("the Debian package prometheus is missing")
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "history.txt").write_text(text)
        (folder / "prometheus.yml").write_text("global: {}\n")
        made = [tool, "tsdb", "create-blocks-from", "openmetrics", str(folder / "history.txt"), str(folder / "data")]
        subprocess.run(made, check=True, capture_output=True)  # noqa: S603  # a tool of the package
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [
            server,
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:  # noqa: S603  # the same
            said = running.stderr or ()
            try:
                if not any("Server is ready" in line for line in said):
                    raise RuntimeError("Prometheus does not start")
                yield f"http://127.0.0.1:{port}"
            finally:
                running.terminate()
                running.communicate()


def printed_in_turn() -> tuple[str, ...]:
    """Run the commands of the tutorial in one folder, and return what each prints."""
    with serving(history()) as url, TemporaryDirectory() as name:
        folder = Path(name)
        asked = FILE.read_text(encoding="utf-8").replace("http://127.0.0.1:9090", url)
        (folder / "monday.toml").write_text(asked, encoding="utf-8")
        commands = [found["command"] for found in BLOCK.finditer(PAGE.read_text("utf-8"))]
        return tuple(_printed(each, folder) for each in commands)


def main() -> None:
    """Write what the commands print, where the page shows something else."""
    rest = iter(printed_in_turn())
    text = PAGE.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        now = next(rest)
        if not agrees(found["output"], now, fits=True):
            text = text.replace(found[0], f"```console\n$ {found['command']}\n{now}```")
            sys.stderr.write(f"{found['command']} was out of date\n")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
