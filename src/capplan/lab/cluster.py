"""A lab as a whole: start, status, change of the round trip, loss and return of a node, stop."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from capplan.answers.verb_answer import VerbAnswer
from capplan.errors import InputError
from capplan.files import replace_file
from capplan.lab import packages, processes, state
from capplan.lab.layout import (
    ECHO_PORT,
    NATIVE_PORT,
    OPENED,
    Layout,
    Node,
    command,
    console_log,
    system_log,
    write_node,
    write_stores,
)
from capplan.lab.packages import Progress
from capplan.lab.processes import Process, node_cores
from capplan.lab.state import PROXY, State

_START_S = 180.0  # that a node may take on a busy machine
_POLL_S = 0.1
_LOG_LINES = 12
KEYSPACE = "lab"
_TOGETHER_S = 120.0
_PAUSE_S = 0.2
_TIMEOUT_S = 20.0
_LOOPBACK = "127.0.0.1"
_MAINTENANCE_S = 600.0


@dataclass(frozen=True)
class NodeStatus:
    """One node.

    Attributes
    ----------
    name
        Its name.
    dc
        Its data centre.
    address
        Where clients find it, on port 9042.
    up
        Whether its process runs.
    answers
        Whether it takes connections of clients.
    pid
        Number of its process, if it runs.
    memory_bytes
        Memory that it holds.
    cpu_s
        CPU time that it has used since its start, in seconds.
    log
        Its log.
    """

    name: str
    dc: int
    address: str
    up: bool
    answers: bool
    pid: int | None
    memory_bytes: int
    cpu_s: float
    log: str


@dataclass(frozen=True)
class LabStatus(VerbAnswer):
    """A lab.

    Attributes
    ----------
    release
        Release of Cassandra.
    dcs
        Data centres.
    cass_nodes
        Nodes of each.
    rf
        Replicas of a row in each.
    rtt_s
        Round trip between data centres, in seconds.
    client_tls
        Whether clients may use TLS.
    internode_tls
        Whether nodes use TLS among each other.
    heap_bytes
        Heap of each node.
    complete
        Whether all nodes have been up together, and the proxy between data centres runs.
    nodes
        Its nodes.
    """

    SCHEMA = "capplan.lab/1"

    release: str
    dcs: int
    cass_nodes: int
    rf: int
    rtt_s: float
    client_tls: bool
    internode_tls: bool
    heap_bytes: int
    complete: bool
    nodes: tuple[NodeStatus, ...]


def up(layout: Layout, rtt_s: float, progress: Progress) -> LabStatus:
    """Start a lab, and return when all its nodes have taken a write together.

    Parameters
    ----------
    layout : Layout
        What is asked for.
    rtt_s : float
        Round trip between data centres, in seconds.
    progress : function
        Receives what is done.

    Raises
    ------
    InputError
        If a lab runs already, an address is in use, memory is short, or a node does not start. Nothing stays then.
    """
    packages.check_installed()
    with state.locked():
        if (found := state.read()) is not None:
            rest = "is running" if found.alive else "has ended and left files"
            raise InputError(f"a lab {rest}: end it with 'capplan lab down' first")
        _check_memory(layout)
        _check_addresses(layout)
        try:
            _start_all(layout, rtt_s, progress)
        except BaseException:
            _clean()
            raise
        return status()


def _start_all(layout: Layout, rtt_s: float, progress: Progress) -> None:
    state.write(State(layout, rtt_s, state.boot()))
    java = packages.java(layout.release, state.packages(), progress)
    jars = packages.jars(layout.release, state.packages(), progress)
    if layout.client_tls or layout.internode_tls:
        write_stores(_tls(), {address for each in layout.nodes for address in (each.address, each.broadcast)})
    if layout.delayed:
        _start_proxy(layout, rtt_s)
    for done, node in enumerate(layout.nodes):
        progress(f"starting {node.name}", done, len(layout.nodes) + 1)
        _start_node(layout, node, java, jars)
    progress("writing to all nodes", len(layout.nodes), len(layout.nodes) + 1)
    create_keyspace(layout, _check_alive)
    state.write(replace(state.needed(), ready=True))


def status() -> LabStatus:
    """Return the layout and the state of the lab.

    Raises
    ------
    InputError
        If there is none.
    """
    found = state.needed()
    layout, alive = found.layout, found.alive
    nodes = tuple(_node_status(each, alive.get(each.name)) for each in layout.nodes)
    return LabStatus(
        layout.release.release,
        layout.dcs,
        layout.cass_nodes,
        layout.rf,
        found.rtt_s,
        layout.client_tls,
        layout.internode_tls,
        layout.heap_bytes,
        found.ready and (PROXY in alive or not layout.delayed),
        nodes,
    )


def _node_status(node: Node, process: Process | None) -> NodeStatus:
    return NodeStatus(
        node.name,
        node.dc,
        node.address,
        process is not None,
        process is not None and _answers(node),
        process.pid if process else None,
        processes.memory_bytes(process) if process else 0,
        processes.cpu_s(process) if process else 0.0,
        str(system_log(folder_of(node))),
    )


def set_rtt(rtt_s: float) -> None:
    """Change the round trip between data centres while the lab runs.

    Raises
    ------
    InputError
        If there is no lab, or it has one data centre, or the proxy has ended.
    """
    with state.locked():
        found = state.needed()
        if not found.layout.delayed:
            raise InputError("the lab has one data centre, so there is no round trip to change: use 'lab up --dcs 2'")
        if PROXY not in found.alive:
            raise InputError("the proxy between the data centres has ended: end the lab with 'capplan lab down'")
        _write_proxy(found.layout, rtt_s)
        state.write(replace(found, rtt_s=rtt_s))
        processes.send(found.processes[PROXY], signal.SIGHUP)


def kill(name: str) -> None:
    """Kill a node as a power failure would.

    Raises
    ------
    InputError
        If there is no such node, or it does not run.
    """
    with state.locked():
        found = state.needed()
        node = found.layout.node(name)
        if node.name not in found.alive:
            raise InputError(f"node {name} does not run: start it with 'capplan lab start {name}'")
        processes.kill(found.processes[node.name])


def start(name: str, progress: Progress) -> None:
    """Start a node that was killed or has ended.

    Raises
    ------
    InputError
        If there is no such node, or it runs, or it does not start.
    """
    with state.locked():
        found = state.needed()
        node = found.layout.node(name)
        if node.name in found.alive:
            raise InputError(f"node {name} runs already")
        progress(f"starting {name}", 0, 1)
        java = packages.java(found.layout.release, state.packages(), progress)
        jars = packages.jars(found.layout.release, state.packages(), progress)
        _start_node(found.layout, node, java, jars)


def down() -> int:
    """Stop every process of the lab and delete its files; return how many processes ran.

    It works after a crash, too, and where there is no lab it does nothing.
    """
    with state.locked():
        return _clean()


def _clean() -> int:
    found = state.read()
    alive = found.alive if found else {}
    processes.stop(alive.values())
    state.delete()
    return len(alive)


@contextmanager
def nodetool(node: Node, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run `nodetool` beside the block, on the cores of the nodes; wait for its end after it.

    If the block fails, nodetool is ended, and what it asked a node for may go on there.

    Raises
    ------
    InputError
        If it fails, or no Java is installed that can run it.
    """
    lab, folder, log = state.needed(), folder_of(node), folder_of(node) / "nodetool.log"
    jars = packages.jars(lab.layout.release, state.packages(), lambda *_: None)
    properties = [f"-Duser.home={folder}", f"-Dcassandra.storagedir={folder}", f"-Djava.io.tmpdir={folder}"]
    tool = ["-cp", os.pathsep.join(map(str, jars)), "org.apache.cassandra.tools.NodeTool", "-p", str(node.jmx_port)]
    asked = [packages.java_of_tools(), *OPENED, *properties, *tool]
    with log.open("wb") as output:
        started = subprocess.Popen([*asked, *words], stdout=output, stderr=subprocess.STDOUT)  # noqa: S603  # ours
    try:
        os.sched_setaffinity(started.pid, node_cores())
        yield started
        if started.wait(_MAINTENANCE_S):
            raise InputError(f"nodetool {words[0]} failed; the last lines of its output:\n{_last_lines([log])}")
    except subprocess.TimeoutExpired:
        raise InputError(f"nodetool {words[0]} took more than {_MAINTENANCE_S:g} s: end the lab and repeat") from None
    finally:
        started.kill()
        started.wait()


def folder_of(node: Node) -> Path:
    """Return the folder of a node."""
    return state.running() / node.name


def certificate() -> Path:
    """Return the certificate of all nodes."""
    return _tls() / "certificate.pem"


def _tls() -> Path:
    return state.running() / "tls"


def _check_memory(layout: Layout) -> None:
    with Path("/proc/meminfo").open(encoding="ascii") as lines:
        free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
    if layout.memory_bytes > free:
        count, heap = layout.dcs * layout.cass_nodes, layout.heap_bytes / 2**20
        raise InputError(
            f"{count} nodes with a heap of {heap:.0f} MiB need {layout.memory_bytes / 2**30:.1f} GiB of memory, and "
            f"{free / 2**30:.1f} GiB are free: give fewer nodes or a smaller --heap"
        )


def _check_addresses(layout: Layout) -> None:
    wanted: list[tuple[str, int]] = []
    for node in layout.nodes:
        wanted += [(node.address, layout.internode_port), (node.address, NATIVE_PORT), (_LOOPBACK, node.jmx_port)]
        if node.broadcast != node.address:
            wanted += [(node.broadcast, layout.internode_port), (node.broadcast, ECHO_PORT), (node.address, ECHO_PORT)]
    for address, port in wanted:
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind((address, port))
            except OSError as error:
                raise InputError(
                    f"port {port} of {address} cannot be used ({error.strerror}), and a lab needs it: "
                    "stop what listens there"
                ) from None


def _proxy_file() -> Path:
    return state.running() / "delay.json"


def _write_proxy(layout: Layout, rtt_s: float) -> None:
    ports = (layout.internode_port, ECHO_PORT)
    forward = [[each.broadcast, each.address, port] for each in layout.nodes for port in ports]
    echo = [[each.address, ECHO_PORT] for each in layout.nodes]
    replace_file(_proxy_file(), json.dumps({"rtt_s": rtt_s, "forward": forward, "echo": echo}))


def _start_proxy(layout: Layout, rtt_s: float) -> None:
    _write_proxy(layout, rtt_s)
    log = state.running() / "delay.log"
    command = [sys.executable, "-m", "capplan.lab.delay_proxy", str(_proxy_file())]
    process = processes.start(command, log, _recorder(PROXY), on_cores=node_cores())
    first = layout.nodes[0]
    _await(PROXY, process, lambda: processes.connects(first.broadcast, layout.internode_port), [log])


def _start_node(layout: Layout, node: Node, java: Path, jars: Sequence[Path]) -> None:
    folder = folder_of(node)
    write_node(layout, node, folder, _tls())
    # Cassandra's native libraries unpack themselves into this folder
    started = command(layout, node, folder, java, jars)
    process = processes.start(started, console_log(folder), _recorder(node.name), {"TMPDIR": str(folder)}, node_cores())
    _await(f"node {node.name}", process, lambda: _answers(node), _logs(node))


def _recorder(name: str) -> Callable[[Process], None]:
    return lambda process: state.write(state.needed().with_process(name, process))


def _await(what: str, process: Process, ready: Callable[[], bool], logs: Sequence[Path]) -> None:
    """Wait until a process is ready.

    Raises
    ------
    InputError
        If it ends before, or takes too long.
    """
    deadline = time.monotonic() + _START_S
    while not ready():
        if not process.alive:
            raise InputError(f"{what} ended while it started; the last lines of its log:\n{_last_lines(logs)}")
        if time.monotonic() > deadline:
            raise InputError(f"{what} took more than {_START_S:g} s; the last lines of its log:\n{_last_lines(logs)}")
        time.sleep(_POLL_S)


def _check_alive() -> None:
    """Check that no node has ended.

    Raises
    ------
    InputError
        If one has.
    """
    found = state.needed()
    for node in found.layout.nodes:
        if node.name not in found.alive:
            raise InputError(f"node {node.name} has ended; the last lines of its log:\n{_last_lines(_logs(node))}")


def _logs(node: Node) -> list[Path]:
    folder = folder_of(node)
    return [system_log(folder), console_log(folder)]


def _last_lines(logs: Sequence[Path]) -> str:
    """Return the last lines of the newest log that is not empty."""
    known = [each for each in logs if each.is_file() and each.stat().st_size]
    if not known:
        return "  (it is empty)"
    newest = max(known, key=lambda each: each.stat().st_mtime)
    lines = newest.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:]
    return "\n".join(f"  {line}" for line in lines)


def _answers(node: Node) -> bool:
    return processes.connects(node.address, NATIVE_PORT)


def session(layout: Layout, node: Node | None = None) -> AbstractContextManager[Any]:
    """Connect the driver to one node of a lab, and to no other."""
    return driver((node or layout.nodes[0]).address)


@contextmanager
def driver(
    address: str, port: int = NATIVE_PORT, login: tuple[str, str] | None = None, certificate: str | None = None
) -> Iterator[Any]:
    """Connect the driver to one node, and to no other.

    Parameters
    ----------
    address, port : str, int
        Where the node answers.
    login : tuple of str, optional
        User and password.
    certificate : str, optional
        Certificate of the nodes (PEM), for TLS.

    Raises
    ------
    InputError
        If it does not answer, or refuses a statement of the block.
    """
    from cassandra import DriverException
    from cassandra.auth import PlainTextAuthProvider
    from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
    from cassandra.policies import WhiteListRoundRobinPolicy

    logging.getLogger("cassandra").setLevel(logging.CRITICAL)  # what fails is raised
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy([address]), request_timeout=_TIMEOUT_S)
    cluster = Cluster(
        [address],
        port=port,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        protocol_version=4,
        connect_timeout=_TIMEOUT_S,
        auth_provider=None if login is None else PlainTextAuthProvider(*login),
        ssl_context=None if certificate is None else tls_context(certificate),
    )
    try:
        yield cluster.connect()
    except (NoHostAvailable, DriverException) as error:
        raise InputError(f"{address}, port {port}: {error}") from None
    finally:
        cluster.shutdown()


def tls_context(certificate: str) -> ssl.SSLContext:
    """Return how to talk TLS with nodes that share a certificate, whatever their names."""
    found = ssl.create_default_context(cadata=certificate)
    found.check_hostname = False
    return found


def replication(layout: Layout) -> str:
    """Return the replication of the lab's keyspace, as CQL."""
    each = ", ".join(f"'dc{dc}': {layout.rf}" for dc in range(1, layout.dcs + 1))
    return f"{{'class': 'NetworkTopologyStrategy', {each}}}"


def create_keyspace(layout: Layout, check: Callable[[], None]) -> None:
    """Create the keyspace and write rows to every node.

    Parameters
    ----------
    layout : Layout
        That of the lab.
    check : function
        Raises an error if waiting is of no use.

    Raises
    ------
    InputError
        If the nodes do not find each other.
    """
    from cassandra import ConsistencyLevel
    from cassandra.query import SimpleStatement

    left = [
        f"CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = {replication(layout)}",
        f"CREATE TABLE IF NOT EXISTS {KEYSPACE}.ready (id bigint PRIMARY KEY)",
        *(f"INSERT INTO {KEYSPACE}.ready (id) VALUES ({number})" for number in range(8 * layout.cass_nodes)),  # noqa: S608  # own names
    ]
    deadline = time.monotonic() + _TOGETHER_S
    while left:
        try:
            with session(layout) as its:
                while left:
                    its.execute(SimpleStatement(left[0], consistency_level=ConsistencyLevel.ALL))
                    left.pop(0)
        except Exception as error:  # of many classes, as long as nodes find each other
            check()
            if time.monotonic() > deadline:
                raise InputError(f"the nodes did not find each other within {_TOGETHER_S:g} s: {error}") from None
            time.sleep(_PAUSE_S)
