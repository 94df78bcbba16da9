"""Measure what requests cost a Cassandra node that holds more and older data, for docs/reference/data-volume.md.

Run as root on a quiet machine with two cores, a Java for nodetool, and the memory controller of cgroup v1:
`uv run --extra lab just data-volume` (a quarter of an hour to write the data, twenty minutes to measure). Runs are kept
as they come, and a second call goes on with those that are missing, on the node that an interrupted one left;
`capplan lab down` ends it. Remove the tables to begin again.

Each size of data is there twice. The aged table has one SSTable with all rows and one more for each round of
overwrites, which writes one column of a random part of the rows. The compacted table has the same SSTables, made one by
`nodetool compact`. Page cache is limited by a control group with the node in it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from capplan.errors import InputError
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.typed_table import TypedTable
from capplan.lab import cluster as lab_cluster
from capplan.lab import state
from capplan.lab.cluster import KEYSPACE, folder_of, nodetool
from capplan.lab.collectors import load
from capplan.lab.collectors.cassandra import Client, Load, Operation, RunningCluster, cluster_of, running_lab
from capplan.lab.collectors.cql import Asked, CqlTarget, FailedError, Flow, FlowOf, Statement
from capplan.lab.collectors.load import Run, Sample, pause, rounded
from capplan.lab.layout import Layout
from capplan.lab.processes import USABLE_CORES, Process, move, node_cores

FOLDER = Path(__file__).resolve().parents[1] / "reference" / "data-volume"
STATES = ("compacted", "aged")
SIZES = (0.2, 1.0, 2.0, 4.0)
"""Compacted data, as multiples of the page cache."""
CACHE_BYTES = 512 << 20
COLUMNS, VALUE_BYTES = 4, 256
DISK_ROW_BYTES = 1072
"""Bytes of a row in a compacted SSTable."""
ROUNDS, OVERWRITTEN = 8, 0.25
LEVEL, CLIENTS, REPEATS = "LOCAL_ONE", 32, 3
FIRST_S, CLOSED_S, OPEN_S = 2.0, 6.0, 10.0  # the first counts nothing
WARM_UP_S, HALF = 150.0, 0.5
_MOST, _KEYS, _AT_ONCE, _LOAD_S = 10_000_000, 1 << 20, 64, 1800.0
_BLOCK_BYTES = 1 << 18
_GROUPS, _GROUP = Path("/sys/fs/cgroup/memory"), "capplan-data-volume"
_POOL = np.random.default_rng(0).bytes(1 << 20)
_OPTIONS = "compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': false}"


@dataclass(frozen=True, kw_only=True)
class DiskRow:
    """What a run used beside what a load-test table holds.

    Attributes
    ----------
    run_id
        The run, as in the load-test table.
    state
        `compacted` or `aged`.
    size
        Compacted data, as a multiple of the page cache.
    rows
        Rows of the table.
    completed
        Requests.
    user_s
        CPU time of the node in its own code, s.
    system_s
        CPU time of the node in the kernel, s.
    read_mib
        What the node read from disk, MiB.
    disk_reads
        Reads that the disk completed, of all processes of the machine.
    major_faults
        Page faults that waited for the disk.
    page_cache_mib
        Page cache of the node after the run, MiB.
    sstables
        SSTables of the table before the run.
    """

    run_id: str | None = None
    state: str | None = None
    size: float | None = None
    rows: int | None = None
    completed: int | None = None
    user_s: float | None = None
    system_s: float | None = None
    read_mib: float | None = None
    disk_reads: int | None = None
    major_faults: int | None = None
    page_cache_mib: float | None = None
    sstables: int | None = None


DISK = TypedTable(DiskRow, "a table of disk reads", "capplan.data-volume/1")


# -- the control group


def _own_group() -> Path:
    """Return the control group for memory in which this process is."""
    lines = Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
    return next(_GROUPS / each.split(":", 2)[2].lstrip("/") for each in lines if each.split(":")[1] == "memory")


@contextmanager
def _inside() -> Iterator[None]:
    """Start processes of the block in the group, to which their memory and page cache then count."""
    before = _own_group()
    (_GROUPS / _GROUP).mkdir(exist_ok=True)
    _write("cgroup.procs", os.getpid())
    try:
        yield
    finally:
        (before / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")


def _write(name: str, value: int) -> None:
    (_GROUPS / _GROUP / name).write_text(str(value), encoding="ascii")


def _page_cache_bytes() -> int:
    lines = (_GROUPS / _GROUP / "memory.stat").read_text(encoding="ascii").splitlines()
    return next(int(each.split()[1]) for each in lines if each.startswith("cache "))


def _limit() -> None:
    """Leave so much memory for page cache beside what the node holds now."""
    _write("memory.limit_in_bytes", -1)
    _write("memory.force_empty", 1)
    held = int((_GROUPS / _GROUP / "memory.usage_in_bytes").read_text(encoding="ascii"))
    _write("memory.limit_in_bytes", held - _page_cache_bytes() + CACHE_BYTES)


def _fill_page_cache(files: Sequence[Path]) -> None:
    """Leave random parts of files in the page cache, as many as fit: it would take requests long to fill it."""
    _write("memory.force_empty", 1)
    sizes = {each: each.stat().st_size for each in files}
    random, share = np.random.default_rng(0), min(1.0, CACHE_BYTES / sum(sizes.values()))
    with _inside():
        for file, size in sizes.items():
            with file.open("rb") as opened:
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # no more than is asked for
                for at in range(0, size, _BLOCK_BYTES):
                    if random.random() < share:
                        os.pread(opened.fileno(), _BLOCK_BYTES, at)


# -- the data


@dataclass(frozen=True)
class Data:
    """A table of a state and a size."""

    state: str
    size: float

    @property
    def table(self) -> str:
        """Its name in the keyspace."""
        return f"{self.state}_{round(10 * self.size)}"

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return int(self.size * CACHE_BYTES / DISK_ROW_BYTES)

    @property
    def creation(self) -> str:
        """The statement that creates it."""
        columns = ", ".join(f"v{each} blob" for each in range(COLUMNS))
        return f"CREATE TABLE IF NOT EXISTS {KEYSPACE}.{self.table} (id bigint PRIMARY KEY, {columns}) WITH {_OPTIONS}"

    def files(self) -> list[Path]:
        """Return the data files of its SSTables."""
        folder = folder_of(running_lab().layout.nodes[0]) / "data" / KEYSPACE
        return sorted(folder.glob(f"{self.table}-*/*-Data.db"))

    def reading(self, client: Client) -> Statement:
        """Prepare the reading of a row."""
        columns = ", ".join(f"v{each}" for each in range(COLUMNS))
        return client.prepared(f"SELECT {columns} FROM {KEYSPACE}.{self.table} WHERE id = ?", LEVEL)  # noqa: S608  # ours

    def writing(self, client: Client, columns: Sequence[int]) -> Statement:
        """Prepare the writing of some columns of a row."""
        names, marks = ", ".join(f"v{each}" for each in columns), ", ?" * len(columns)
        text = f"INSERT INTO {KEYSPACE}.{self.table} (id, {names}) VALUES (?{marks})"  # noqa: S608  # ours
        return client.prepared(text, LEVEL, *[bytes(VALUE_BYTES)] * len(columns), of=_Random)

    def requests(self, client: Client, operation: Operation, seed: int) -> FlowOf:
        """Prepare requests for rows that are drawn with equal chances; a write is of one column."""
        keys = np.random.default_rng(seed).integers(self.rows, size=_KEYS).tolist()
        reads, (to,) = operation == "read", client.connections
        asked = [self.reading(client)] if reads else [self.writing(client, [each]) for each in range(COLUMNS)]

        def ask(number: int) -> Flow:
            yield Asked(to, asked[number % len(asked)], keys[number % _KEYS], needs_row=reads)

        return ask


class _Random(Statement):
    """A writing whose values are random and not the same in two rows, so that they do not compress."""

    def frame(self, key: int, stream: int) -> bytearray:
        frame = super().frame(key, stream)
        for at in range(len(frame) - VALUE_BYTES, self._key + 8, -VALUE_BYTES - 4):
            begin = int(time.perf_counter_ns() * 2654435761 >> 7) % (len(_POOL) - VALUE_BYTES)
            frame[at : at + VALUE_BYTES] = _POOL[begin : begin + VALUE_BYTES]
        return frame


def _say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def _tool(*words: str) -> None:
    with nodetool(running_lab().layout.nodes[0], *words):
        pass


def _written(client: Client, statement: Statement, keys: Sequence[int]) -> None:
    """Write rows, in this order; those that a busy node refuses come again at the end."""
    left = list(keys)
    while left:
        upcoming, refused = iter(left), list[int]()
        flows = ((0.0, _writes(client, statement, upcoming, refused)) for _ in range(_AT_ONCE))
        client.loop.run(flows, _LOAD_S)
        if len(refused) == len(left):
            raise InputError("the node refuses all rows: see its log")
        left = refused


def _writes(client: Client, statement: Statement, keys: Iterator[int], refused: list[int]) -> Flow:
    for key in keys:
        try:
            yield Asked(client.connections[0], statement, key)
        except FailedError:
            refused.append(key)


def _merge(files: Sequence[Path]) -> None:
    """Make one SSTable of some."""
    if len(files) > 1:
        _tool("compact", "--user-defined", *map(str, files))


def _fill(client: Client, size: float) -> None:
    """Write the aged table of a size, and make the compacted one of it."""
    compacted, aged = (Data(each, size) for each in STATES)
    marker = folder_of(running_lab().layout.nodes[0]) / f"filled-{aged.table}"
    if marker.exists():
        return
    client.create(*(f"DROP TABLE IF EXISTS {KEYSPACE}.{each.table}" for each in (compacted, aged)))
    client.create(compacted.creation, aged.creation)
    random = np.random.default_rng(round(10 * size))
    for number in range(ROUNDS + 1):
        _say(f"{aged.table}: {aged.rows:,} rows, round {number} of {ROUNDS}")
        before, order = set(aged.files()), random.permutation(aged.rows)
        columns = [(number - 1) % COLUMNS] if number else list(range(COLUMNS))
        part = order[: round(OVERWRITTEN * aged.rows)] if number else order
        _written(client, aged.writing(client, columns), part.tolist())
        _tool("flush", KEYSPACE, aged.table)
        _merge([each for each in aged.files() if each not in before])
    folder = aged.files()[0].parent
    _tool("import", "--copy-data", KEYSPACE, compacted.table, str(folder))
    _tool("compact", KEYSPACE, compacted.table)
    while len(compacted.files()) > 1:  # the node deletes the others when it has time
        time.sleep(0.5)
    marker.touch()
    for each in (compacted, aged):
        _say(f"{each.table}: {len(each.files())} SSTables, {_gib(each) * 1024:,.0f} MiB")


def _gib(data: Data) -> float:
    return sum(each.stat().st_size for each in data.files()) / 2**30


# -- the runs


@dataclass(frozen=True)
class _Used:
    """What a node and the disk have used since they started."""

    user_s: float
    system_s: float
    read_bytes: int
    major_faults: int
    disk_reads: int


def _used(process: Process, folder: Path) -> _Used:
    own, device = Path("/proc", str(process.pid)), folder.stat().st_dev
    cells = (own / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    counted = dict(each.split(": ") for each in (own / "io").read_text(encoding="ascii").splitlines())
    disk = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read_text(encoding="ascii").split()
    user_s, system_s = (int(cells[each]) / os.sysconf("SC_CLK_TCK") for each in (11, 12))
    return _Used(user_s, system_s, int(counted["read_bytes"]), int(cells[9]), int(disk[0]))


class _Runs:
    """The runs so far, which are on disk."""

    def __init__(self, client: Client, cluster: RunningCluster) -> None:
        self.client, self.cluster = client, cluster
        self.folder = folder_of(running_lab().layout.nodes[0])
        self._files = FOLDER / "runs.csv", FOLDER / "disk.csv"
        kept = [each.is_file() for each in self._files]
        self.rows = list(LOAD_TESTS.rows(LOAD_TESTS.read(self._files[0]))) if all(kept) else list[LoadTestRow]()
        self._disk = list(DISK.rows(DISK.read(self._files[1]))) if all(kept) else list[DiskRow]()
        self.seed = len(self.rows)

    def target(self, data: Data, operation: Operation) -> CqlTarget:
        """Return requests to a table."""
        self.seed += 1
        flow = data.requests(self.client, operation, self.seed)
        return CqlTarget(self.cluster.servers, f"no {operation} was answered", flow=flow, loop=self.client.loop)

    def rate(self, operation: Operation) -> float | None:
        """Return the rate of the open runs so far."""
        return next(
            (each.offered_tps for each in self.rows if each.offered_tps and each.request_class == operation), None
        )

    def made(self, data: Data, operation: Operation, repeat: int) -> int:
        """Return how many runs of a cell there are."""
        prefix = f"{data.table}-{operation}-"
        return sum(each.repeat == repeat and (each.run_id or "").startswith(prefix) for each in self.rows)

    async def sampled(self, data: Data, operation: Operation, rate: float | None, seconds: float) -> Sample:
        """Make an open run, or a closed one without a rate; it asks for rows that no other run asked for."""
        await pause()
        target, clients = self.target(data, operation), None if rate else CLIENTS
        return target.answered(await target.sampled(clients, rate, seconds, _MOST, self.seed))

    async def first(self, data: Data, operation: Operation) -> float:
        """Fill the page cache, and return the throughput of a short run that is not kept."""
        _fill_page_cache(data.files())
        return (await self.sampled(data, operation, None, FIRST_S)).throughput_per_s

    async def cell(self, data: Data, operation: Operation, rate: float, repeat: int) -> None:
        """Make a closed and an open run."""
        await self.first(data, operation)
        sstables, gib = len(data.files()), _gib(data)
        for clients, offered, seconds in ((CLIENTS, None, CLOSED_S), (None, rate, OPEN_S)):
            before = _used(self.cluster.servers.nodes[0], self.folder)
            sample = await self.sampled(data, operation, offered, seconds)
            after = _used(self.cluster.servers.nodes[0], self.folder)
            kind = f"closed-{clients}" if clients else f"open-{rate:.0f}"
            name = f"{data.table}-{operation}-{kind}-{repeat}"
            its = Load(operation, LEVEL, COLUMNS * VALUE_BYTES, clients, offered)
            cells = {**self.cluster.row(its), "data_gib": gib, "gc": self.cluster.pauses(sample)}
            what = f"{data.state}, {data.size:g} x page cache, {sstables} SSTables"
            self.rows.append(Run(name, clients, offered, repeat, sample).row(cells, [what]))
            self._disk.append(
                DiskRow(
                    run_id=name,
                    state=data.state,
                    size=data.size,
                    rows=data.rows,
                    completed=sample.completed,
                    user_s=after.user_s - before.user_s,
                    system_s=after.system_s - before.system_s,
                    read_mib=(after.read_bytes - before.read_bytes) / 2**20,
                    disk_reads=after.disk_reads - before.disk_reads,
                    major_faults=after.major_faults - before.major_faults,
                    page_cache_mib=_page_cache_bytes() / 2**20,
                    sstables=sstables,
                )
            )
            tps, cpu_us = sample.throughput_per_s, 1e6 * sum(sample.server_cpu_s) / sample.completed
            _say(f"{name}: {tps:,.0f}/s, {cpu_us:.1f} us, {self._disk[-1]}")
        LOAD_TESTS.write(LOAD_TESTS.frame(self.rows), self._files[0])
        DISK.write(DISK.frame(self._disk), self._files[1])


async def _measure(runs: _Runs, operation: Operation) -> None:
    """Make all runs of an operation, sizes and states in turn."""
    every = [Data(*each) for each in product(STATES, SIZES)]
    missing = [(repeat, each) for repeat in range(1, REPEATS + 1) for each in every[:: 1 if repeat % 2 else -1]]
    missing = [each for each in missing if not runs.made(each[1], operation, each[0])]
    if not missing:
        return
    targets = [runs.target(each, operation) for each in every]

    def ask(number: int) -> Flow:
        return targets[number % len(targets)].flow(number)

    _say(f"warming up {operation}s")
    _say((await replace(targets[0], flow=ask).warmed_up(CLIENTS, _MOST, WARM_UP_S)).sentence)
    _limit()
    rate = runs.rate(operation)
    if rate is None:
        most = [await runs.first(each, operation) for each in every]
        _say(f"{operation}s per second: {', '.join(f'{each:,.0f}' for each in most)}")
        rate = rounded(HALF * min(most))
    for repeat, data in missing:
        await runs.cell(data, operation, rate, repeat)


def _load(client: Client, cluster: RunningCluster) -> None:
    """Write all data that are missing, with all cores."""
    client.loop.sharing = True
    for each in cluster.servers.nodes:
        move(each, USABLE_CORES)
    _tool("setcompactionthroughput", "0")
    for size in SIZES:
        _fill(client, size)
    client.loop.sharing = False
    for each in cluster.servers.nodes:
        move(each, node_cores())


def main() -> None:
    """Start a node, write the data, measure, and end it; `load` as argument ends before the measurement."""
    if state.read() is None:
        with _inside():
            lab_cluster.up(Layout(), 0.0, lambda what, done, total: _say(f"{what}: {done} of {total}"))
    if not (_GROUPS / _GROUP).is_dir():
        raise InputError("a lab runs that has no limit of memory: end it with 'capplan lab down' first")
    lab = running_lab()
    cluster = replace(cluster_of(lab.layout, lab), source="docs/generate/data_volume_runs.py")
    FOLDER.mkdir(exist_ok=True)
    with closing(Client(cluster)) as client:
        _load(client, cluster)
        if "load" in sys.argv[1:]:
            return
        runs = _Runs(client, cluster)
        for operation in ("read", "write"):
            load.run(_measure(runs, operation))
    lab_cluster.down()
    (_GROUPS / _GROUP).rmdir()


if __name__ == "__main__":
    main()
