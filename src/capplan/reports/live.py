"""Real servers for people: the lab and its nodes, collections, and live validations.

A live validation as a page of Markdown, and its files beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from capplan.errors import InputError
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.microbenchmarks import MicrobenchRow
from capplan.files import replace_file
from capplan.lab.cluster import LabStatus, NodeStatus
from capplan.lab.collectors.collector import Collected, Collector
from capplan.planner.live import live_validation as words
from capplan.planner.live.folder import Folder
from capplan.planner.live.live_validation import LiveFigure, LiveValidation
from capplan.reports.document import Block, Break, Bullets, Cell, Code, Column, Heading, Paragraph, table
from capplan.reports.markdown import markdown
from capplan.reports.numbers import capital

_FACTORS = {"s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))}
_MOST_PARTS = 24
_CLOCK = "cpu clock"
_SERVERS = ("nodes", "server")  # all of them together
_OF_RUNS = (*_SERVERS, "load generator")  # parts whose figures stand beside each run
_DETAILS = ("figures", "clusters", "50 %", "80 %", "95 %", "PIT")  # of the bias of a kind of figure
_WRITTEN = {"load_tests": "load tests", "microbenchmarks": "figures of parts", "histograms": "all latencies"}


def _columns(left: Sequence[str], right: Sequence[str]) -> list[Column]:
    return [*map(Column, left), *(Column(head, right=True) for head in right)]


def status(found: LabStatus) -> Iterator[Block]:
    """Yield a lab and its nodes."""
    dcs = f"{found.dcs} data centre{'s' if found.dcs > 1 else ''} of {found.cass_nodes}"
    parts = [f"Cassandra {found.release}", dcs, f"RF {found.rf}", f"heap {found.heap_bytes / 2**20:.0f} MiB"]
    if found.dcs > 1:
        parts.append(f"round trip {found.rtt_s * 1000:g} ms")
    used = {"clients": found.client_tls, "between nodes": found.internode_tls}
    if tls := [name for name, wanted in used.items() if wanted]:
        parts.append(f"TLS {' and '.join(tls)}")
    yield Heading(", ".join(parts), 1)
    yield table(_columns(("node", "address", "state"), ("pid", "memory", "CPU time")), map(_node, found.nodes))
    down = [each.name for each in found.nodes if not each.up]
    if down:
        yield Paragraph(f"Start a node that is down with 'capplan lab start {down[0]}'.")
    elif not found.complete:
        yield Paragraph("The lab is incomplete: end it with 'capplan lab down'.")


def _node(node: NodeStatus) -> list[str]:
    address = f"{node.address}:9042"
    if not node.up:
        return [node.name, address, "down", "", "", ""]
    state = "up" if node.answers else "starting"
    return [node.name, address, state, str(node.pid), f"{node.memory_bytes / 2**20:,.0f} MiB", f"{node.cpu_s:,.1f} s"]


def collectors(known: Mapping[str, Collector]) -> Iterator[Block]:
    """Yield every collector and the model parameter that it informs."""
    for name, each in known.items():
        yield Heading(name, 1)
        yield Paragraph(each.about, level=1)
        yield Paragraph(each.parameter, level=1)


def collected(found: Collected, written: Mapping[str, Path]) -> Iterator[Block]:
    """Yield the main figures, the remarks, and the files."""
    if found.load_tests:
        yield from _runs(found)
    hidden = {_CLOCK, *_OF_RUNS} if found.load_tests else {_CLOCK}
    parts = [each for each in found.microbenchmarks if each.component not in hidden and each.value]
    if parts:
        columns = _columns(("part", "operation", "quantity", ""), ("figure",))
        yield table(columns, map(_part, parts[:_MOST_PARTS]))
    if len(parts) > _MOST_PARTS:
        yield Paragraph(f"and {len(parts) - _MOST_PARTS} more figures")
    yield Break()
    yield Bullets(tuple(f"{capital(remark)}." for remark in found.remarks), marked=False)
    yield Break()
    for what, path in written.items():
        yield Code(str(path), _WRITTEN[what])
    if "load_tests" in written:
        yield Code(f"capplan evidence audit {written['load_tests']}", "Next")


def _runs(found: Collected) -> Iterator[Block]:
    kinds = list(dict.fromkeys(row.request_class for row in found.load_tests))
    costs = {each.run_id: each for each in found.microbenchmarks if each.component in _SERVERS}
    for kind in kinds:
        if len(kinds) > 1:
            yield Heading(kind or "", 1)
        rows = [_run(row, costs.get(row.run_id)) for row in found.load_tests if row.request_class == kind]
        yield table(_columns(("load",), ("completed", "p50", "p99", "node", "client", "CPU/request")), rows)
    yield Paragraph("node, client: CPU of a node and of the load generator; CPU/request: of all nodes together")
    yield Break()


def _run(row: LoadTestRow, cost: MicrobenchRow | None) -> list[str]:
    closed = row.load_kind == "closed"
    return [
        f"{row.clients} closed" if closed else f"{row.offered_tps or 0:,.0f}/s open",
        f"{row.throughput_tps or 0:,.0f}/s",
        *("" if ms is None else f"{_digits(ms, 3)} ms" for ms in (row.latency_p50_ms, row.latency_p99_ms)),
        *(f"{used or 0:.0f} %" for used in (row.node_cpu_percent, row.client_cpu_percent)),
        "" if cost is None else _with_error(cost),
    ]


def _part(row: MicrobenchRow) -> list[str]:
    statistic = None if row.statistic == "constant" else row.statistic
    quantity = (row.quantity or "").replace("_", " ")
    return [row.component or "", row.operation or "", quantity, statistic or "", _with_error(row)]


def _with_error(row: MicrobenchRow) -> str:
    """Return a figure with the half-width of its interval, in a readable unit."""
    value = row.value or 0.0
    factor, unit = _scale(abs(value), row.unit or "")
    shown = _digits(value / factor, 3)
    if row.error_low is not None and row.error_high is not None:
        shown += f" ± {_digits((row.error_high - row.error_low) / 2 / factor, 2)}"
    return f"{shown} {unit}".rstrip()


def _digits(value: float, count: int) -> str:
    return f"{value:,.0f}" if abs(value) >= 10**count else f"{value:.{count}g}"


def _scale(value: float, unit: str) -> tuple[float, str]:
    """Return the largest unit in which a value is at least one."""
    if unit == "1":
        return 1.0, ""
    scales = _FACTORS.get(unit, ((1.0, unit),))
    return next((each for each in scales if value >= each[0]), scales[-1])


def validation(found: LiveValidation) -> Iterator[Block]:
    """Yield the figures beside their predictions, and last the verdict and what it rests on."""
    yield from _results(found)
    yield Break()
    yield from _verdict(found, found.predictions)


def _results(found: LiveValidation) -> Iterator[Block]:
    """Yield the bias of each kind, the figures of each cluster, and why some are not judged."""
    if found.kinds:
        yield Heading("Bias by kind of figure")
        left = ("kind", "verdict")
        kinds = (Column(each, right=each not in left, optional=each in _DETAILS) for each in words.KIND_HEADS)
        yield table(kinds, map(words.kind_cells, found.kinds))
        yield Paragraph(words.KIND_LEGEND)
    for cluster, group in groupby(found.figures, key=lambda each: each.cluster):
        figures = list(group)
        yield Heading(capital(cluster))
        heads = _columns(("load", "quantity"), ("predicted (90 % band)", "measured", "error"))
        yield table([*heads, "right"], _figures(figures))
        yield Bullets((*words.round_trips(figures), *words.sessions(figures), *words.reasons(figures)), marked=False)
    yield Break()
    yield Paragraph(words.LEGEND)


def _figures(figures: Sequence[LiveFigure]) -> Iterator[list[Cell]]:
    """Yield a row for each statement, and below it one for each of its figures."""
    for said, group in groupby(figures, key=words.statement):
        yield [Cell(said, emphasis="verdict")]
        for each in group:
            load, *others = words.cells(each)
            yield [Cell(load, level=1), *map(Cell, others)]


def _verdict(found: LiveValidation, predictions: str) -> Iterator[Block]:
    counts = ", ".join(f"{found.count(verdict)} {verdict}" for verdict in words.VERDICTS)
    yield Paragraph(f"{len(found.figures)} figures: {counts}.", "verdict")
    yield Paragraph(
        f"Fitted to {found.fitted_runs} runs. Left out, as the load generator was the bottleneck: "
        f"{found.left_out_runs}. Disturbed by other processes: {found.disturbed_runs}."
    )
    if found.audit:
        yield Paragraph(f"Audit of the fitted runs: {', '.join(found.audit)}.")
    yield Paragraph(f"Predicted at {found.predicted_at}, measured from {found.measured_from}.")
    yield Code(predictions, "Predictions")
    yield Code(found.sha256, "SHA-256")


PAGE = "live-validation.md"
_SESSIONS = ", also those of [sessions](live/sessions.csv),"
_ONE_MACHINE = (
    " The load generator has a core of that machine for itself, and all nodes share the others. So the page shows "
    "costs, queueing and round trips, not what a cluster of machines carries; it cannot show disks, networks, or what "
    "nodes gain by having cores of their own. With a cluster, run `capplan validate --live --hosts hosts.toml`."
)


def write_page(found: LiveValidation, folder: Folder, target: Path) -> Path:
    """Write the page and the tables to a folder, created if necessary; return the page.

    Raises
    ------
    InputError
        If they cannot be written.
    """
    data = target / "live"
    try:
        data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{target} cannot be made: {error.strerror}") from None
    folder.copy_to(data)
    replace_file(target / PAGE, page(found))
    return target / PAGE


def page(found: LiveValidation) -> str:
    """Return the page."""
    beside = f"[runs predicted](live/measured.csv){_SESSIONS if any(words.sessions(found.figures)) else ''}"
    return markdown(
        (
            Heading("Predicted, then measured on real nodes", 1),
            Paragraph(
                f"`capplan validate --live` wrote this page: protocol *{found.protocol}*, capplan {found.version}, "
                f"Cassandra {found.cassandra}, {found.machine}.{_ONE_MACHINE if found.one_host else ''}"
            ),
            Paragraph(
                "The predictions were written before the runs that they speak of. The [predictions]"
                f"(live/predictions.json), the [runs fitted](live/small.csv) and the {beside} are beside this page."
            ),
            *_verdict(found, "live/predictions.json"),
            *_results(found),
        )
    )
