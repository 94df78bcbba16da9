"""Real servers for people: the lab and its nodes, collections, and live validations.

A live validation as a page of Markdown, and its files beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from capplan.calibration.tables.bias import KindOfFigure
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.microbenchmarks import MicrobenchRow
from capplan.lab.cluster import LabStatus, NodeStatus
from capplan.lab.collectors.collector import Collected, Collector
from capplan.models.errors import InputError
from capplan.models.files import replace_file
from capplan.planner.live import live_validation as words
from capplan.planner.live.folder import Folder
from capplan.planner.live.live_validation import GeneratorFigures, LiveFigure, LiveValidation
from capplan.reports.document import Block, Cell, Column, Line, Paragraph, Table, ruled, texts
from capplan.reports.numbers import capital

_FACTORS = {"s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))}
_MOST_PARTS = 24
_CLOCK = "cpu clock"
_SERVERS = ("nodes", "server")  # all of them together
_OF_RUNS = (*_SERVERS, "load generator")  # parts whose figures stand beside each run
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
    yield Line(", ".join(parts), "bold", fill=True)
    rows = [(each.name, f"{each.address}:9042", _state(each), *_use(each)) for each in found.nodes]
    yield ruled(_columns(("node", "address", "state"), ("pid", "memory", "CPU time")), texts(rows))
    down = [each.name for each in found.nodes if not each.up]
    if down:
        yield Line(f"Start a node that is down with 'capplan lab start {down[0]}'.", fill=True)
    elif not found.complete:
        yield Line("The lab is incomplete: end it with 'capplan lab down'.", fill=True)


def _state(node: NodeStatus) -> str:
    if not node.up:
        return "down"
    return "up" if node.answers else "starting"


def _use(node: NodeStatus) -> tuple[str, str, str]:
    if not node.up:
        return "", "", ""
    return str(node.pid), f"{node.memory_bytes / 2**20:,.0f} MiB", f"{node.cpu_s:,.1f} s"


def collectors(known: Mapping[str, Collector]) -> Iterator[Block]:
    """Yield every collector and the model parameter that it informs."""
    for name, each in known.items():
        yield Line(name, "bold")
        yield Paragraph(each.about, indent=2)
        yield Paragraph(each.parameter, indent=2)


def collected(found: Collected, written: Mapping[str, Path]) -> Iterator[Block]:
    """Yield the main figures, the remarks, and the files."""
    if found.load_tests:
        yield from _runs(found)
    hidden = {_CLOCK, *_OF_RUNS} if found.load_tests else {_CLOCK}
    parts = [each for each in found.microbenchmarks if each.component not in hidden and each.value]
    if parts:
        columns = _columns(("part", "operation", "quantity", ""), ("figure",))
        yield ruled(columns, texts(map(_part, parts[:_MOST_PARTS])))
    if len(parts) > _MOST_PARTS:
        yield Line(f"and {len(parts) - _MOST_PARTS} more figures")
    yield Line()
    for remark in found.remarks:
        yield Paragraph(f"{capital(remark)}.", hanging=2)
    yield Line()
    for what, path in written.items():
        yield Line(f"{_WRITTEN[what]}: {path}")
    if "load_tests" in written:
        yield Line(f"Next: capplan evidence audit {written['load_tests']}", "dim")


def _runs(found: Collected) -> Iterator[Block]:
    kinds = list(dict.fromkeys(row.request_class for row in found.load_tests))
    costs = {each.run_id: each for each in found.microbenchmarks if each.component in _SERVERS}
    for kind in kinds:
        if len(kinds) > 1:
            yield Line(kind or "", "bold")
        rows = [_run(row, costs.get(row.run_id)) for row in found.load_tests if row.request_class == kind]
        yield ruled(_columns(("load",), ("completed", "p50", "p99", "node", "client", "CPU/request")), texts(rows))
    yield Paragraph("node, client: CPU of a node and of the load generator; CPU/request: of all nodes together")
    yield Line()


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
    """Yield the bias of each kind, the figures of each cluster, why some are not judged, and the basis of all."""
    if found.kinds:
        yield Line("Bias by kind of figure", "bold")
        yield _kinds(found.kinds)
        yield Paragraph(words.KIND_LEGEND)
        yield Line()
    for cluster, group in groupby(found.figures, key=lambda each: each.cluster):
        figures = list(group)
        yield Line(capital(cluster), "bold")
        yield _figures(figures)
        for sentence in [*words.round_trips(figures), *words.sessions(figures), *words.reasons(figures)]:
            yield Paragraph(sentence, hanging=2)
        yield Line()
    yield Paragraph(words.LEGEND)
    yield Line()
    counts = [f"{found.count(verdict)} {verdict}" for verdict in words.VERDICTS]
    yield Paragraph(f"{len(found.figures)} figures: {', '.join(counts)}.")
    yield Paragraph(
        f"Fitted to {found.fitted_runs} runs. Left out, as the load generator was the bottleneck: "
        f"{found.left_out_runs}. Disturbed by other processes: {found.disturbed_runs}.",
        hanging=2,
    )
    if found.audit:
        yield Paragraph(f"Audit of the fitted runs: {', '.join(found.audit)}.", hanging=2)
    yield Line(f"Predicted at {found.predicted_at}, measured from {found.measured_from}.")
    yield Line(f"Predictions: {found.predictions}")
    yield Line(f"SHA-256: {found.sha256}")


def _kinds(kinds: Sequence[KindOfFigure]) -> Table:
    rows = [words.kind_cells(each) for each in kinds]
    below = [
        Line(f"{name}: {verdict}; predicted / measured {ratio}, too low {low}; 90 % bands hold {held}")
        for name, _, _, ratio, low, _, _, held, _, _, verdict in rows
    ]
    return Table(tuple(map(Column, words.KIND_HEADS)), texts(rows), narrow=tuple(below))


def _figures(figures: Sequence[LiveFigure]) -> Table:
    """Return a table with a heading line for each statement; a list if the table is too wide."""
    rows: list[tuple[Cell, ...]] = []
    below: list[Block] = []
    for said, group in groupby(figures, key=words.statement):
        rows.append((Cell(said, style="cyan"),))
        for each in group:
            rows.append(tuple(map(Cell, words.cells(each))))
            load, quantity, predicted, measured, error, verdict = words.cells(each)
            below.append(Line(f"{said}, {load}, {quantity}"))
            gap = f"measured {measured or '-'}, error {error or '-'}: {verdict}"
            below.append(Line(f"    predicted {predicted}, {gap}"))
    heads = ("load", "quantity", "predicted (band)", "measured", "error", "right")
    return Table(tuple(map(Column, heads)), tuple(rows), narrow=tuple(below))


PAGE = "live-validation.md"
_HEADS = ("load", "quantity", "predicted (90 % band)", "measured", "error", "right")
_SESSIONS = ", also those of [sessions](live/sessions.csv),"
_ONE_MACHINE = (
    " The load generator has a core of that machine for itself, and all nodes share the others. So the page shows "
    "costs, queueing and round trips, not what a cluster of machines carries; it cannot show disks, networks, or what "
    "nodes gain by having cores of their own. With a cluster, run `capplan validate --live --hosts hosts.toml`."
)
_GENERATORS = (
    "Reads at LOCAL_ONE, each generator on the same core in turn. Open requests come at the ticks of a timer of 1 ms, "
    "several at once, as latte sends them; in all other runs of this page they come at random. Latencies and what the "
    "generator itself adds to them in ms."
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
    counts = ", ".join(f"{found.count(verdict)} {verdict}" for verdict in words.VERDICTS)
    parts = [
        "# Predicted, then measured on real nodes",
        f"`capplan validate --live` wrote this page: protocol *{found.protocol}*, capplan {found.version}, Cassandra "
        f"{found.cassandra}, {found.machine}.{_ONE_MACHINE if found.one_host else ''}",
        f"The model was fitted to {found.fitted_runs} small runs. The predictions were written at {found.predicted_at} "
        f"with the SHA-256 `{found.sha256}`; the runs that they speak of began at {found.measured_from}. The "
        "[predictions](live/predictions.json), the [runs fitted](live/small.csv) and the [runs "
        f"predicted](live/measured.csv){_SESSIONS if any(words.sessions(found.figures)) else ''} are beside this page.",
        f"**{len(found.figures)} figures: {counts}.** Runs left out, as the load generator was the bottleneck: "
        f"{found.left_out_runs}. Runs that other processes disturbed: {found.disturbed_runs}.",
        *([f"Audit of the fitted runs: {', '.join(found.audit)}."] if found.audit else []),
        words.LEGEND[0].upper() + words.LEGEND[1:],
    ]
    if found.kinds:
        right = range(1, len(words.KIND_HEADS) - 1)
        kinds = _markdown(words.KIND_HEADS, right, map(words.kind_cells, found.kinds))
        parts[3:3] = ["## Bias by kind of figure", kinds, words.KIND_LEGEND, "## All figures"]
    if found.generators:
        heads = ("load", "generator", "completed", "p50", "p99", "added")
        both = _markdown(heads, range(2, 6), map(_generator_cells, found.generators))
        parts += ["## Two load generators on one warm node", _GENERATORS, both]
    for cluster, group in groupby(found.figures, key=lambda each: each.cluster):
        figures = list(group)
        parts.append(f"## {cluster[0].upper()}{cluster[1:]}")
        cells = [(words.statement(each), words.cells(each)) for each in figures]
        rows = [[f"{said}, {load}", *others] for said, (load, *others) in cells]
        parts.append(_markdown(_HEADS, (2, 3, 4), rows))
        parts += [*words.round_trips(figures), *words.sessions(figures), *words.reasons(figures)]
    return "\n\n".join(parts) + "\n"


def _generator_cells(each: GeneratorFigures) -> list[str]:
    times = ("" if ms is None else f"{ms:.3g}" for ms in (each.latency_p50_ms, each.latency_p99_ms, each.added_ms))
    return [each.load, each.generator, f"{each.throughput_tps or 0:,.0f}/s", *times]


def _markdown(heads: Sequence[str], right: Sequence[int], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown, with some columns aligned to the right."""
    rule = ["--:" if place in right else ":--" for place in range(len(heads))]
    return "\n".join(f"| {' | '.join(each)} |" for each in (heads, rule, *rows))
