"""Measure how long answers take that wait for another data centre, for docs/reference/another-data-centre.md.

Run on a quiet machine with two cores, as root:
`uv run --extra lab python docs/generate/another_data_centre_runs.py [--minutes N]`. It says first how long it takes. It
keeps each run as it comes and goes on with those that are missing; with `--minutes` it ends between two runs.

Each data centre is a network namespace with one node. A TUN device in each is their only way to one another: a process
holds each packet for half a round trip, so that TCP sees what it sees over a long line. It also counts the packets.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import heapq
import json
import multiprocessing
import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from another_data_centre import AGREE, FOLDER, NEWER_HERE, PAGE, PARTS, Planned, page, plan
from stopped_nodes import JOURNAL, add, lines

from capplan.errors import InputError
from capplan.lab import packages, processes, state
from capplan.lab.cluster import KEYSPACE, create_keyspace, replication
from capplan.lab.collectors.cassandra import Client, RunningCluster, Table
from capplan.lab.collectors.cql import closed, paced
from capplan.lab.collectors.load import Sample, Servers, arrivals, machine_cpu_s
from capplan.lab.collectors.runs_in_turn import seed_of
from capplan.lab.layout import NATIVE_PORT, Layout, Node, command, console_log, settings, write_node
from capplan.lab.processes import USABLE_CORES, Process

ROWS, SEED = 2000, 1
WARM_UP_S, WARM_CLIENTS, WARM_RTT_S, PAUSE_S, START_S = 20.0, 16, 0.001, 1.0, 45.0
PRIORITY = -10  # of the nodes and the generator, or else other processes of a shared machine are part of each answer
NODELAY = "inter_dc_tcp_nodelay"
_TUNSETIFF, _TUN_WITHOUT_HEADER = 0x400454CA, 0x1001
_CLONE_NEWNET = 0x40000000
_PACKET, _IDLE_S = 4096, 0.05
_C1_ONLY = "-XX:TieredStopAtLevel=1"  # steady after seconds


def _say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


# -- the line between the data centres


def _payload(packet: bytes) -> tuple[str, int] | None:
    """Return which way a TCP segment between nodes goes, and its payload in bytes; None for another packet."""
    if packet[0] >> 4 != 4 or packet[9] != 6:
        return None
    header = 4 * (packet[0] & 15)
    own, other = struct.unpack_from(">HH", packet, header)
    size = int.from_bytes(packet[2:4], "big") - header - 4 * (packet[header + 12] >> 4)
    return (f"dc{packet[14]} to dc{packet[18]}, port {own} to {other}", size) if size else None


def _hold(devices: Mapping[int, int], asked: Pipe) -> None:
    """Bring each packet of a device to the other one after half a round trip, which the pipe sets.

    The answer through the pipe is the number of segments with payload, and of their bytes, by connection.
    """
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    held, order, half_s = list[tuple[float, int, int, bytes]](), count(), 0.0
    segments, payload = Counter[str](), Counter[str]()
    while True:
        wait_s = max(0.0, min(held[0][0] - time.monotonic(), _IDLE_S)) if held else _IDLE_S
        readable, _, _ = select.select([*devices, asked.fileno()], [], [], wait_s)
        for device in readable:
            if device == asked.fileno():
                half_s = asked.recv() / 2
                asked.send({name: (segments[name], payload[name]) for name in segments})
                segments, payload = Counter(), Counter()
                continue
            with suppress(BlockingIOError):
                while True:
                    packet, now = os.read(device, _PACKET), time.monotonic()
                    heapq.heappush(held, (now + half_s, next(order), devices[device], packet))
                    if seen := _payload(packet):
                        segments[seen[0]] += 1
                        payload[seen[0]] += seen[1]
        while held and held[0][0] <= time.monotonic():
            _, _, device, packet = heapq.heappop(held)
            with suppress(OSError):  # the device is gone at the end
                os.write(device, packet)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)  # noqa: S603, S607  # its own words


def _device(name: str) -> int:
    found = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(found, _TUNSETIFF, struct.pack("16sH", name.encode(), _TUN_WITHOUT_HEADER))
    return found


class Line:
    """The line between the data centres, whose round trip can change."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def set_rtt(self, rtt_s: float) -> dict[str, tuple[int, int]]:
        """Set the round trip; return what each connection has carried since the last time: segments and bytes."""
        self._pipe.send(rtt_s)
        seen: dict[str, tuple[int, int]] = self._pipe.recv()
        return seen


@contextmanager
def _line(nodes: tuple[Node, ...]) -> Iterator[Line]:
    """Make a namespace for each node, and a process between them."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    with ExitStack() as made:
        devices = []
        for node, peer in zip(nodes, reversed(nodes), strict=True):
            space, device = _namespace(node), f"{_namespace(node)}t"
            _ip("netns", "add", space)
            made.callback(_ip, "netns", "del", space)
            devices.append(_device(device))
            made.callback(os.close, devices[-1])
            _ip("link", "set", device, "netns", space)
            _ip("-n", space, "addr", "add", node.address, "peer", peer.address, "dev", device)
            for each in ("lo", device):
                _ip("-n", space, "link", "set", each, "up")
            _ip("netns", "exec", space, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno")  # every kernel has it
        holder = context.Process(target=_hold, args=(dict(zip(devices, reversed(devices), strict=True)), there))
        holder.start()
        made.callback(holder.join)
        made.callback(holder.terminate)
        yield Line(here)


def _namespace(node: Node) -> str:
    return f"c{os.getpid()}-{node.dc}"


def _enter(node: Node) -> None:
    """Let this process see the network of a node."""
    with Path(f"/run/netns/{_namespace(node)}").open() as space:
        if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "the namespace of the clients cannot be entered")


# -- the nodes


@dataclass(frozen=True)
class Alone(Node):
    """A node with an address that no other data centre shares."""

    @property
    def address(self) -> str:
        """The address on which the node listens."""
        return f"10.77.{self.dc}.1"


class Apart(Layout):
    """Two data centres with a namespace each and no proxy between them."""

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, data centre by data centre."""
        return tuple(Alone(each.dc, each.number, each.token, delayed=False) for each in super().nodes)


@contextmanager
def _nodes(layout: Layout, folder: Path, nodelay: bool) -> Iterator[list[Process]]:
    """Run a node in each namespace."""
    java = packages.java(layout.release, state.packages(), lambda what, *_: _say(what))
    jars = packages.jars(layout.release, state.packages(), lambda what, *_: _say(what))
    started = list[Process]()
    try:
        for node in layout.nodes:
            own = folder / node.name
            write_node(layout, node, own, folder)
            chosen = {**settings(layout, node, own, folder), NODELAY: nodelay, "hinted_handoff_enabled": False}
            (own / "cassandra.yaml").write_text(json.dumps(chosen), encoding="utf-8")
            asked = ["ip", "netns", "exec", _namespace(node), *command(layout, node, own, java, jars)]
            asked.insert(asked.index(str(java)) + 1, _C1_ONLY)
            processes.start(asked, console_log(own), started.append, {"TMPDIR": str(own)})
            _await(node, started[-1], console_log(own))
        yield started
    finally:
        processes.stop(started)


def _await(node: Node, process: Process, log: Path) -> None:
    ends = time.monotonic() + START_S * 4
    while not processes.connects(node.address, NATIVE_PORT):
        if not process.alive or time.monotonic() > ends:
            raise InputError(f"node {node.name} does not start:\n{log.read_text(encoding='utf-8')[-2000:]}")
        time.sleep(0.2)


# -- the load


class Generator:
    """Clients in the first data centre, its cluster and its line to the other one."""

    def __init__(self, client: Client, layout: Layout, line: Line, tables: Mapping[int, Table]) -> None:
        self.client, self.layout, self.line, self.tables = client, layout, line, tables

    def warm_up(self) -> None:
        """Fill the tables, and write and read them with closed clients."""
        self.line.set_rtt(WARM_RTT_S)
        for table in self.tables.values():
            self.client.create(table.creation)
            table.fill(self.client, "ALL", SEED)
            for operation in ("write", "read"):
                flow = table.requests(self.client, operation, "QUORUM", SEED)
                load = closed(flow, WARM_CLIENTS, WARM_UP_S / 4, sys.maxsize)
                self.client.loop.run(load, WARM_UP_S / 4)

    def _differ(self, run: Planned) -> Table:
        """Return a table of which one replica is newer: the keyspace has the other one not while rows are written."""
        table = Table(f"{KEYSPACE}.r{abs(seed_of(run.name))}", run.row_bytes, ROWS, " WITH read_repair = 'BLOCKING'")
        self.client.create(table.creation)
        table.fill(self.client, "ALL", SEED)
        newer = 1 if run.replicas == NEWER_HERE else 2
        only = f"{{'class': 'NetworkTopologyStrategy', 'dc{newer}': 1}}"
        self.client.create(f"ALTER KEYSPACE {KEYSPACE} WITH replication = {only}")
        table.fill(self.client, "ALL", SEED + 1)
        self.client.create(f"ALTER KEYSPACE {KEYSPACE} WITH replication = {replication(self.layout)}")
        return table

    def measured(self, run: Planned) -> dict[str, Any]:
        """Send the requests of a run at random times, in parts, and return its cells."""
        self.line.set_rtt(WARM_RTT_S)
        table = self.tables[run.row_bytes] if run.replicas == AGREE else self._differ(run)
        flow = table.requests(self.client, run.operation, run.level, SEED)
        self.line.set_rtt(run.rtt_ms / 1e3)
        time.sleep(PAUSE_S)
        self.line.set_rtt(run.rtt_ms / 1e3)
        used_s, began, sent, samples = machine_cpu_s(), time.perf_counter(), 0, list[Sample]()
        for part in range(PARTS):
            starts_s = arrivals(run.rate_per_s, run.part_s, ROWS, seed_of(f"{run.name} {part}"))
            samples.append(self.client.loop.run(paced(flow, starts_s, sent), run.part_s, paced=True))
            sent += len(starts_s)
        busy = (machine_cpu_s() - used_s) / (time.perf_counter() - began) / len(USABLE_CORES)
        trips = np.concatenate([each.latencies_s for each in samples]) / (run.rtt_ms / 1e3)
        p50, p99 = np.quantile(trips, (0.5, 0.99))
        return {
            "requests": len(trips),
            "errors": sum(each.errors for each in samples),
            "mean": float(trips.mean()),
            "p50": float(p50),
            "p99": float(p99),
            "added_ms": max(1e3 * (each.added_s or 0.0) for each in samples),
            "host_busy": busy,
            "carried": self.line.set_rtt(run.rtt_ms / 1e3),
        }


def runs_left(folder: Path) -> list[Planned]:
    """Return the runs of the plan that the journal does not have."""
    done = {each["run_id"] for each in lines(folder)}
    return [each for each in plan() if each.name not in done]


def seconds_left(runs: list[Planned]) -> float:
    """Return how long runs take."""
    starts = len({each.nodelay for each in runs})
    return starts * (2 * START_S + WARM_UP_S) + sum(each.duration_s + 3 * PAUSE_S for each in runs)


def _measure(line: Line, runs: list[Planned], folder: Path, ends: float) -> None:
    """Start nodes with one setting, and make runs until there is no time for the next."""
    layout = Apart(dcs=2, collector="serial")
    with TemporaryDirectory() as files, _nodes(layout, Path(files), runs[0].nodelay) as started:
        create_keyspace(layout, lambda: None)
        cluster = RunningCluster(
            version=layout.release.release,
            cass_nodes=(1, 1),
            rf=(1, 1),
            addresses=(layout.nodes[0].address,),
            replication=replication(layout),
            keyspace=KEYSPACE,
            node_cores=float(len(USABLE_CORES)),
            servers=Servers(tuple(started)),
        )
        with closing(Client(cluster)) as client:
            client.loop.sharing = True
            tables = {each: Table(f"{KEYSPACE}.b{each}", each, ROWS) for each in {run.row_bytes for run in plan()}}
            generator = Generator(client, layout, line, tables)
            generator.warm_up()
            for run in runs:
                if time.monotonic() + run.duration_s > ends:
                    return
                cells = generator.measured(run)
                add(folder, run, cells)
                _say(f"{run.name}: " + ", ".join(f"{name} {each:.3g}" for name, each in list(cells.items())[:-1]))


def main() -> None:
    """Measure what is missing, and write the page."""
    parser = argparse.ArgumentParser(description="Measure how long answers from another data centre take.")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="end between two runs before that")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the runs are kept")
    asked = parser.parse_args()
    folder, ends = asked.folder, time.monotonic() + 60 * asked.minutes
    folder.mkdir(parents=True, exist_ok=True)
    (folder / JOURNAL).touch()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.nice(PRIORITY)
    runs = runs_left(folder)
    _say(f"the missing runs take {seconds_left(runs) / 60:.0f} minutes")
    if runs:
        nodes = Apart(dcs=2).nodes
        with _line(nodes) as line:
            _enter(nodes[0])
            for setting in sorted({each.nodelay for each in runs}):
                if time.monotonic() + START_S > ends:
                    break
                _measure(line, [each for each in runs if each.nodelay == setting], folder, ends)
    if folder == FOLDER:
        PAGE.write_text(page(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
