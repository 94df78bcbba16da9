"""A real Cassandra: started, measured for seconds, and gone without a trace, however `lab up` ended."""

import fcntl
import hashlib
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir

import pytest

from capplan.evidence.audit.audit import audit_load_tests
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.microbenchmarks import MICROBENCHMARKS
from capplan.files import user_cache
from capplan.lab import cluster, state
from capplan.lab.cluster import KEYSPACE, session
from capplan.lab.collectors.sessions import SESSION
from capplan.lab.layout import NATIVE_PORT, Layout
from capplan.planner.live.folder import LARGE, PREDICTIONS, SMALL, Folder, runs_in, sessions_in

pytestmark = pytest.mark.live

KINDS, LEVELS = (SESSION, "auth", "start", "update"), ("local_quorum-local_quorum", "local_quorum-quorum")
RUN = [sys.executable, "-c", "from capplan.cli.process import run; run()"]
CACHE = user_cache() / "tests"  # keeps packages between runs; a lab of the user is left alone


@pytest.fixture(autouse=True)
def lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One lab at a time on this machine, whichever worker runs the test, and none afterwards."""
    monkeypatch.setenv("CAPPLAN_CACHE_DIR", str(CACHE))
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cluster.down()
        yield
        cluster.down()


def capplan(*arguments: str, code: int = 0) -> str:
    """Run a command of capplan, and return what it prints."""
    done = subprocess.run([*RUN, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def ours() -> list[str]:
    """Command lines of processes that name this cache."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if str(CACHE) in line:
                    found.append(line)
    return found


def assert_clean(layout: Layout) -> None:
    """No process, port or file of the lab is left; packages stay."""
    assert ours() == []
    for node in layout.nodes:
        for address in {node.address, node.broadcast}:
            for port in (NATIVE_PORT, layout.internode_port):
                with socket.socket() as tried:
                    tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    tried.bind((address, port))
    assert not state.running().exists()
    assert {each.name for each in state.folder().iterdir()} <= {"lock", "packages"}


def test_one_node_is_measured_and_leaves_nothing(tmp_path: Path) -> None:
    temporary = set(Path(gettempdir()).iterdir())  # where Java likes to leave files
    found = json.loads(capplan("lab", "up", "--json"))
    assert found["complete"]
    assert [each["answers"] for each in found["nodes"]] == [True]
    short = ("--duration", "1s", "--warm-up", "4s", "--clients", "1,8", "--rates", "30%")

    for name in ("cassandra-write", "cassandra-read"):
        table = tmp_path / f"{name}.parquet"
        capplan("collect", name, "-o", str(table), *short)
        rows = list(LOAD_TESTS.rows(LOAD_TESTS.read(table)))
        verdicts = audit_load_tests(LOAD_TESTS.read(table)).rows
        for row, verdict in zip(rows, verdicts, strict=True):
            assert verdict.believed or "do not fit" in (row.note or "")  # other tests may starve the generator
        assert [each.load_kind for each in rows] == ["closed", "closed", "open"]
        assert all((each.throughput_tps or 0) > 50 and not each.errors for each in rows)
        costs = MICROBENCHMARKS.read(tmp_path / f"{name}.microbench.parquet")
        nodes = costs[costs["component"] == "nodes"]["value"]
        assert ((nodes > 5e-6) & (nodes < 0.05)).all()
    for name in ("client", "cassandra-coordinator"):
        capplan("collect", name, "-o", str(tmp_path / f"{name}.csv"), *(short[:2] if name == "client" else ()))
    counted = MICROBENCHMARKS.read(tmp_path / "cassandra-coordinator.microbench.csv")
    assert {"coordinator", "replica", "thread pool"} <= set(counted["component"])
    capplan("lab", "up", code=2)  # one runs already

    capplan("lab", "down")
    assert_clean(Layout())
    left = {each.name for each in set(Path(gettempdir()).iterdir()) - temporary}
    assert not [name for name in left if "cassandra" in name or "hsperf" in name or "jna" in name.lower()]


def latency_ms(level: str) -> float:
    """Median latency of a write to a row of both data centres, from the first one."""
    from cassandra import ConsistencyLevel
    from cassandra.query import SimpleStatement

    text = f"INSERT INTO {KEYSPACE}.ready (id) VALUES (7)"
    statement = SimpleStatement(text, consistency_level=getattr(ConsistencyLevel, level))
    times = []
    with session(state.needed().layout) as cql:
        for _ in range(30):
            began = time.perf_counter()
            cql.execute(statement)
            times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times)


def test_a_quorum_over_two_data_centres_waits_a_round_trip_and_a_local_one_does_not(tmp_path: Path) -> None:
    layout = Layout(dcs=2, client_tls=True, internode_tls=True)
    capplan("lab", "up", "--dcs", "2", "--rtt", "100ms", "--client-tls", "--internode-tls")

    assert 100 <= latency_ms("QUORUM") < 200  # one round trip, not two
    assert latency_ms("LOCAL_QUORUM") < 50
    capplan("lab", "rtt", "0ms")
    capplan("collect", "rtt", "-o", str(tmp_path / "rtt.csv"), "--requests", "50")
    capplan("collect", "tls", "-o", str(tmp_path / "tls.csv"))
    handshake = MICROBENCHMARKS.read(tmp_path / "tls.microbench.csv").query("operation == 'handshake'")
    assert (handshake["value"] > 0).all()

    capplan("lab", "kill", "dc2-1")
    assert json.loads(capplan("lab", "status", "--json", code=1))["nodes"][1]["up"] is False
    capplan("lab", "start", "dc2-1")
    assert capplan("lab", "status")
    capplan("lab", "down")
    assert_clean(layout)


def test_a_session_misses_its_row_in_another_data_centre_unless_its_writes_wait_for_all(tmp_path: Path) -> None:
    program = Path(__file__).with_name("short_sessions.py")
    subprocess.run([sys.executable, str(program), str(tmp_path)], check=True, capture_output=True)
    assert_clean(Layout(dcs=2))

    found = sessions_in(Folder(tmp_path)).rows
    assert not any(row.errors for row in found.values())
    missed, waited = ([found[f"s-{each}-think-1ms-100ms-open-15-1", kind] for kind in KINDS] for each in LEVELS)
    assert missed[0].drops  # the row needs 50 ms, and the next message some few
    assert waited[0].drops == 0
    quick, slow = ([row.latency_p50_ms or 0.0 for row in rows] for rows in (missed, waited))
    assert max(quick[1:]) < 100
    assert slow[1] < 100 <= min(slow[2:])


def test_a_compaction_is_measured_beside_requests(tmp_path: Path) -> None:
    program = Path(__file__).with_name("short_maintenance.py")
    subprocess.run([sys.executable, str(program), "compaction", str(tmp_path)], check=True, capture_output=True)
    rows = list(LOAD_TESTS.rows(LOAD_TESTS.read(tmp_path / "compaction.csv")))
    assert [str(row.run_id).split("-")[1] for row in rows] == ["without", "with"]
    assert all(row.throughput_tps and not row.errors for row in rows)
    parts = MICROBENCHMARKS.read(tmp_path / "compaction.microbench.csv")
    assert 1e-4 < parts[parts["quantity"] == "cpu_time"]["value"].item() < 1.0  # seconds of CPU for a MiB
    assert_clean(Layout())


def test_calls_and_streams_of_grpc_are_measured(tmp_path: Path) -> None:
    capplan("collect", "grpc", "-o", str(tmp_path / "grpc.csv"), "--duration", "600ms", "--clients", "1,4")
    found = MICROBENCHMARKS.read(tmp_path / "grpc.microbench.csv")
    kinds = {f"{kind}, {clients}" for kind in ("call", "message of a stream") for clients in ("1 client", "4 clients")}
    assert kinds <= set(found["operation"])
    assert (found["value"] > 0).all()
    throughputs = found[found["quantity"] == "throughput"]
    assert list(throughputs["component"]) == ["predicted", "measured"] * 2


def test_lookups_of_hazelcast_are_predicted_and_measured(tmp_path: Path) -> None:
    short = ("--duration", "300ms", "--warm-up", "1s", "--clients", "1,4", "--rates", "-")
    capplan("collect", "hazelcast", "-o", str(tmp_path / "h.csv"), *short)
    rows = list(LOAD_TESTS.rows(LOAD_TESTS.read(tmp_path / "h.csv")))
    assert [row.request_class for row in rows] == ["get", "get", "get of 100", "get of 100"]
    assert all((row.throughput_tps or 0) > 10 and not row.errors for row in rows)
    found = MICROBENCHMARKS.read(tmp_path / "h.microbench.csv")
    assert {"predicted", "measured", "server", "load generator"} <= set(found["component"])
    assert ours() == []


def recorded(name: str) -> Callable[[], bool]:
    """Whether a process is in the state file."""
    return lambda: (found := state.read()) is not None and name in found.processes


def logged(word: str) -> Callable[[], bool]:
    """Whether the log of the second node has a word."""
    path = state.folder() / "running" / "dc2-1" / "system.log"
    return lambda: path.is_file() and word in path.read_text(encoding="utf-8", errors="replace")


def _moments() -> dict[str, Callable[[], bool]]:
    return {
        "at once": lambda: True,
        "state written": lambda: state.running().exists(),
        "proxy": recorded("delay"),
        "first node": recorded("dc1-1"),
        "second node joins": lambda: logged("Starting Messaging Service")() or logged("listening")(),
    }


@pytest.mark.parametrize("moment", ["at once", "state written", "proxy", "first node", "second node joins"])
def test_killing_lab_up_at_any_moment_leaves_what_down_cleans(moment: str) -> None:
    happened: Callable[[], bool] = _moments()[moment]
    up = subprocess.Popen([*RUN, "lab", "up", "--dcs", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not happened():
        with suppress(subprocess.TimeoutExpired):
            up.wait(timeout=0.01)
            pytest.fail("lab up ended before")
    up.kill()
    up.wait()

    capplan("lab", "down")

    assert_clean(Layout(dcs=2))


def test_a_validation_that_is_killed_leaves_what_down_cleans_and_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "validation"
    table = folder / SMALL
    program = [sys.executable, str(Path(__file__).with_name("short_validation.py")), str(folder)]
    validation = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not table.is_file():
        with suppress(subprocess.TimeoutExpired):
            validation.wait(timeout=0.01)
            pytest.fail("the validation ended before")
    validation.kill()
    validation.wait()

    capplan("lab", "down")

    assert_clean(Layout())
    before = runs_in(Folder(folder), SMALL).rows
    done = subprocess.run(program, capture_output=True, text=True, check=True)  # as it was killed, so it goes on
    found = json.loads(done.stdout)
    after = runs_in(Folder(folder), SMALL).rows
    assert before
    assert {name: after[name] for name in before} == before  # what was measured is not measured again
    assert found["sha256"] == hashlib.sha256((folder / PREDICTIONS).read_bytes()).hexdigest()
    assert found["predicted_at"] <= found["measured_from"]
    assert {each["quantity"] for each in found["figures"]} == {"capacity", "p50", "p99"}
    assert_clean(Layout())


HOSTS = """
node_cores = 2
[[dcs]]
name = "dc1"
nodes = ["127.0.0.1"]
rf = 1
"""


def test_a_cluster_that_exists_is_predicted_then_measured_and_goes_on(tmp_path: Path) -> None:
    """Whether figures of so short runs are off is not asked: the exit code says it."""
    capplan("lab", "up")
    hosts, report = tmp_path / "hosts.toml", tmp_path / "report"
    hosts.write_text(HOSTS, encoding="utf-8")
    program = [sys.executable, str(Path(__file__).with_name("short_hosts.py")), str(hosts), str(report)]
    own_cache = {**os.environ, "CAPPLAN_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(program, capture_output=True, text=True, check=False, env=own_cache)

    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    assert {each["quantity"] for each in found["figures"]} == {"capacity", "p50", "p99"}
    assert found["sha256"] == hashlib.sha256((report / "live" / PREDICTIONS).read_bytes()).hexdigest()
    assert found["predicted_at"] <= found["measured_from"]
    for name in (SMALL, LARGE):
        rows = list(LOAD_TESTS.rows(LOAD_TESTS.read(report / "live" / name)))
        levels = {row.consistency_read or row.consistency_write for row in rows}
        assert ({(row.cass_nodes, row.node_cores) for row in rows}, levels) == ({(1, 2)}, {"LOCAL_ONE"})
        assert all((row.throughput_tps or 0) > 10 and not row.errors for row in rows)
    assert state.needed().alive  # who did not start a cluster does not end it

    capplan("lab", "down")
    assert_clean(Layout())


def test_an_address_in_use_is_refused_and_left_alone() -> None:
    with socket.create_server(("127.0.0.1", NATIVE_PORT)) as taken:
        done = subprocess.run([*RUN, "lab", "up"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"port {NATIVE_PORT} of 127.0.0.1" in done.stderr
        assert len([line for line in done.stderr.splitlines() if not line.endswith("at work ...")]) == 1
        assert taken.fileno() >= 0
    assert_clean(Layout())
