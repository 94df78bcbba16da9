"""Servers of collectors: they end with the collector, and a load is predicted from smaller ones before it is run."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capplan.errors import InputError, MissingError, check_extra
from capplan.evidence.audit.audit import audit_load_tests
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.lab.collectors import load, servers
from capplan.lab.collectors.collector import Collected, Costs, Settings
from capplan.lab.collectors.ldap import ENTRIES, bind_messages, decoded, search_messages
from capplan.lab.collectors.load import Part, Sample
from capplan.lab.collectors.servers import MEASURED, PREDICTED, Expectation, Subject
from capplan.lab.processes import Process
from capplan.planner.live import server_forecast
from capplan.planner.live.server_forecast import latency_s, throughput_per_s

CORES = 2
CLIENT_S, OTHER_S = 100e-6, 200e-6
SERVER_S = {"request": (50e-6, 0.0), "proxied request": (110e-6, 50e-6)}  # CPU at the front and at the home server


# -- prediction: 16,000 requests of exponential times make the mean uncertain by at most 1 %, so 5 % fails once in 10^6


def test_one_client_completes_one_request_in_the_time_of_one() -> None:
    costs = Costs(1e-4, 2e-4, 3e-4)
    assert throughput_per_s(costs, CORES, 1) == pytest.approx(1 / 6e-4, rel=0.05)


def test_the_thread_of_the_generator_is_the_limit_if_it_is_the_slowest() -> None:
    assert throughput_per_s(Costs(1e-4, 1e-5, 0.0), CORES, 64) == pytest.approx(1e4, rel=0.05)


def test_the_cores_are_the_limit_if_the_server_is_the_slowest() -> None:
    """Both cores are always busy with 64 clients: 2 / 1.1 ms."""
    assert throughput_per_s(Costs(1e-4, 1e-3, 0.0), CORES, 64) == pytest.approx(2 / 1.1e-3, rel=0.05)


def test_a_lone_request_of_an_open_load_waits_for_nothing() -> None:
    assert latency_s(Costs(1e-4, 2e-4, 3e-4), CORES, 1.0) == pytest.approx(6e-4, rel=0.05)


def test_an_open_load_waits_as_at_one_server_if_there_is_one() -> None:
    """One core that is half busy: the latency of M/M/1 is the service time twice."""
    assert latency_s(Costs(0.0, 1e-3, 0.0), 1, 500.0) == pytest.approx(2e-3, rel=0.15)


# -- load


def sample(kind: str, clients: int, rate: float, open_load: bool = False) -> Sample:
    count, duration_s = round(rate), 1.0
    latency_s = 1e-3 if open_load else clients / rate
    latencies = latency_s * (1 + 1e-3 * np.random.default_rng(1).random(count))
    servers = tuple(count * each for each in SERVER_S[kind])
    part = Part(duration_s / 5, count // 5, sum(servers) / 5, CLIENT_S * count / 5, CLIENT_S * count / 5)
    late = np.full(count, 1e-5) if open_load else np.array([])
    busy_s = CLIENT_S * count
    return Sample(0.0, duration_s, latencies, late, 0, busy_s, busy_s, 0.0, servers, 0.0, (part,) * 5)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Runs instead of real ones, in their order; closed clients make 1,000 requests per second each, up to 5,000."""
    runs: list[str] = []

    async def closed(request: Callable[[int], Awaitable[str]], clients: int, *others: Any) -> Sample:
        del others
        kind = await request(0)
        runs.append(f"{clients} {kind}")
        return sample(kind, clients, min(1000.0 * clients, 5000.0))

    async def paced(request: Callable[[int], Awaitable[str]], starts: list[float], *others: Any) -> Sample:
        del others
        kind = await request(0)
        runs.append(f"open {kind}")
        return sample(kind, 0, len(starts), open_load=True)

    async def nothing(*arguments: Any) -> float:
        del arguments
        return 0.0

    for name, value in {
        "closed": closed,
        "paced": paced,
        "pause": nothing,
        "cores": lambda: CORES,
        "cpu_error_s": lambda: 0.0,
        "cpu_quantum_s": lambda: 1e-3,
    }.items():
        monkeypatch.setattr(load, name, value)
    monkeypatch.setattr(servers, "idle_cores", nothing)
    monkeypatch.setattr(servers, "cores", lambda: CORES)
    return runs


def measured(settings: Settings) -> Collected:
    async def request(number: int) -> str:
        del number
        return "request"

    async def proxied(number: int) -> str:
        del number
        return "proxied request"

    parts = {"front": Process(1, 1), "home server": Process(2, 2)}
    expected = {"proxied request": Expectation("request", "front", 2.0, "a front node works twice")}
    kinds = {"request": request, "proxied request": proxied}
    subject = Subject("radius", "FreeRADIUS", "3.2", parts, kinds, "as in a test", expected)
    return servers.measure(nullcontext(subject), settings, lambda *_: None, server_forecast)


def value(found: Collected, component: str, operation: str) -> float:
    rows = [each for each in found.microbenchmarks if (each.component, each.operation) == (component, operation)]
    assert len(rows) == 1
    return rows[0].value or 0.0


def test_the_run_with_most_clients_is_predicted_from_the_costs_of_fewer(made: list[str]) -> None:
    found = measured(Settings(warm_up_s=0.0, duration_s=1.0, clients=(1, 4, 16), shares=(0.5,)))

    assert made == [f"{run} {kind}" for kind in SERVER_S for run in ("1", "4", "16", "open")]
    costs = Costs(CLIENT_S, 50e-6, 1e-3 * (1 + 5e-4) - CLIENT_S - 50e-6)  # 1 ms with one client
    said = throughput_per_s(costs, CORES, 16)
    assert value(found, PREDICTED, "request, 16 clients") == pytest.approx(said, rel=0.05)
    assert value(found, MEASURED, "request, 16 clients") == pytest.approx(5000)
    assert len(found.load_tests) == len(found.histograms) == len(made)
    assert audit_load_tests(LOAD_TESTS.frame(found.load_tests)).findings == ()


def test_a_run_that_ends_before_its_first_part_is_measured_as_a_whole(
    made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del made
    whole = load.closed

    async def short(*arguments: Any) -> Sample:
        return replace(await whole(*arguments), parts=())

    monkeypatch.setattr(load, "closed", short)
    found = measured(Settings(warm_up_s=0.0, clients=(1, 16), shares=()))
    assert value(found, MEASURED, "request, 16 clients") == pytest.approx(5000)
    assert value(found, "server", "request, 16 clients") == pytest.approx(50e-6)


def test_what_the_model_says_of_a_kind_stands_beside_its_measurement(made: list[str]) -> None:
    found = measured(Settings(warm_up_s=0.0, duration_s=1.0, clients=(4,), shares=()))

    assert made == ["4 request", "4 proxied request"]
    assert value(found, PREDICTED, "proxied request, front") == pytest.approx(100e-6)
    assert value(found, MEASURED, "proxied request, front") == pytest.approx(110e-6)
    assert value(found, "home server", "proxied request, 4 clients") == pytest.approx(50e-6)


# -- LDAP


def test_messages_of_ldap_are_encoded_once_for_each_entry() -> None:
    assert len(set(search_messages())) == len(set(bind_messages())) == ENTRIES


@pytest.mark.parametrize(
    ("answer", "tag", "code"),
    [
        ("300c02010165070a010004000400", 5, 0),  # the end of a search
        ("300c02010161070a013104000400", 1, 49),  # a bind with a wrong password (RFC 4511, 4.1.9)
        ("300e020101640904056f3d6c61623000", 4, 0),  # an entry without attributes
    ],
)
def test_answers_of_ldap_are_read(answer: str, tag: int, code: int) -> None:
    assert decoded(bytes.fromhex(answer)) == (tag, code)


# -- processes

_STARTER = """
import sys
from pathlib import Path
from capplan.lab.collectors.servers import running
with running("sleep", ["sleep", "600"], Path(sys.argv[1]), lambda: True) as process:
    print(process.pid, flush=True)
    sys.stdin.read()
"""


def ended(pid: int) -> bool:
    """Whether a process has ended, or ends within 20 s."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 20)[0])
    finally:
        os.close(handle)


@pytest.mark.parametrize("end", [signal.SIGKILL, None])
def test_a_server_ends_with_its_collector_however_that_ends(end: signal.Signals | None, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _STARTER, str(tmp_path / "log")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdin is not None
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        if end is None:
            starter.stdin.close()
        else:
            starter.send_signal(end)
        assert ended(pid)


def test_a_server_that_does_not_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo bad line 7; exit 3"]
    failing = servers.running("a server", command, tmp_path / "log", lambda: False)
    with pytest.raises(InputError, match="bad line 7"), failing:
        pass


def test_a_server_that_is_not_installed_is_refused_with_the_way_to_get_it() -> None:
    with pytest.raises(MissingError, match="apt-get install slapd"):
        servers.needed_program(("no-such-slapd",), "slapd")
    with pytest.raises(MissingError, match="capplan"):
        check_extra("lab", "no_such_module")
