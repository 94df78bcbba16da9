"""Sessions of a live validation without nodes: what a session asks for, its prediction, and its verdicts."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from capplan.evidence.load_test_row import LoadTestRow
from capplan.lab.collectors.cassandra import RunningCluster
from capplan.lab.collectors.runs_in_turn import Bounds, run_name
from capplan.lab.collectors.sessions import SESSION, SessionLoad, Sessions, row_of
from capplan.lab.layout import Layout
from capplan.models.language.parameter import defaults
from capplan.models.language.units import Number
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import solve
from capplan.planner.live.folder import Folder, sessions_in
from capplan.planner.live.protocol import SessionStage
from capplan.planner.live.sessions import (
    FLOW,
    chance_not_found,
    session_figures,
    session_network,
)
from capplan.systems.cassandra.network import HOST
from capplan.systems.cassandra.priors import PARAMETERS
from capplan.systems.cassandra.scenario import CassandraScenario

NEAR = SessionLoad("LOCAL_QUORUM", "LOCAL_QUORUM", think_s=0.0, sessions_per_s=10.0, rtt_ms=10.0)
EVERYWHERE = replace(NEAR, write="QUORUM")
VALUES: dict[str, Number] = {**defaults(PARAMETERS), "unseen_work": np.full(8, 0.5)}


def scenario(load: SessionLoad) -> CassandraScenario:
    """Two data centres of one node on one machine."""
    return CassandraScenario(
        dcs=2,
        cass_nodes=1,
        rf=1,
        node_cores=2,
        one_host=True,
        consistency_read=load.read,
        consistency_write=load.write,
        rtt=f"{load.rtt_ms:g}ms",
        token_aware=True,
    )


class Rows:
    """Data centres in memory; a row that one writes at QUORUM is in the others at once."""

    def __init__(self, dcs: int, level: str) -> None:
        self.rows: list[set[int]] = [set() for _ in range(dcs)]
        self.asked: list[tuple[int, str]] = []
        self.level = level

    def answer(self, dc: int, statement: str, row: int) -> bool:
        """Return whether a row was found, or whatever a write returns."""
        self.asked.append((dc, statement))
        if statement == "read":
            return row in self.rows[dc]
        for each in self.rows if self.level == "QUORUM" or statement == "delete" else self.rows[dc : dc + 1]:
            if statement == "write":
                each.add(row)
            elif statement == "delete":
                each.discard(row)
        return True

    def run(self, sessions: Sessions, number: int) -> None:
        """Run a session, without waiting."""
        flow, answer = sessions.run(number), None
        with suppress(StopIteration):
            while True:
                asked = flow.send(answer)  # type: ignore[arg-type]  # None begins it
                answer = False if isinstance(asked, float) else self.answer(*asked)  # type: ignore[arg-type,call-arg]  # what `Named` asks for


@dataclass(frozen=True)
class Named:
    """The statements of a data centre, by name."""

    dc: int
    known: str = "known"
    select: str = "read"
    insert: str = "write"
    delete: str = "delete"

    def ask(self, statement: str, number: int) -> tuple[int, str, int]:
        """Return what is asked for."""
        return self.dc, statement, number


@pytest.mark.parametrize(("load", "missed"), [(NEAR, 3), (EVERYWHERE, 0)])
def test_messages_go_to_the_data_centres_in_turn_and_a_session_is_missed_once(load: SessionLoad, missed: int) -> None:
    """The row is written at the second message, and first read at the third, in the other data centre."""
    rows = Rows(2, load.write)
    sessions = Sessions([Named(0), Named(1)], FLOW, load)  # type: ignore[list-item]  # as the flow uses them
    for number in range(3):
        rows.run(sessions, number)
    one = [(0, "known"), (1, "write")]
    one += [(step % 2, what) for step in range(2, 7) for what in ("read", "write")] + [(1, "read"), (1, "delete")]
    assert rows.asked[: len(one)] == one
    assert rows.asked[len(one)] == (1, "known")  # the next session begins in the next data centre
    assert not any(rows.rows)
    assert (sessions.missed, sessions.checked) == (missed, 3)
    counts = {name: len(values) for name, values in sessions.took_s.items()}
    assert counts == {"auth": 3, "start": 3, "update": 18, SESSION: 3}


def test_a_message_takes_what_its_statements_take() -> None:
    """At next to no load, an update takes as long as a read and a write, and a quorum one round trip more."""
    means = {}
    for load in (NEAR, EVERYWHERE):
        analysis = Analysis(session_network(scenario(load), VALUES, 0.001))
        point = solve(analysis, 1e-6)
        means[load.write] = {name: float(point.response_s(name)[0]) for name in ("auth", "start", "update")}
    near, far = means["LOCAL_QUORUM"], means["QUORUM"]
    assert near["update"] == pytest.approx(near["auth"] + near["start"], rel=1e-6)
    assert far["auth"] == pytest.approx(near["auth"], rel=1e-6)
    trip_s = 0.010 * (1 + VALUES["wan_extra"])
    assert far["start"] - near["start"] == pytest.approx(trip_s, rel=0.1)


def test_work_at_the_host_is_that_of_seven_reads_and_seven_writes() -> None:
    of_session = Analysis(session_network(scenario(NEAR), VALUES, 0.001)).load(HOST)[0]
    plain = {}
    for name, part in (("read", 1.0), ("write", 0.0)):
        from capplan.systems.cassandra import SYSTEM

        its = replace(scenario(NEAR), read_fraction=part)
        plain[name] = Analysis(SYSTEM.network(its, VALUES, 1.0)).load(HOST)[0]
    assert of_session == pytest.approx(7 * (plain["read"] + plain["write"]) / 8, rel=1e-9)


def test_a_session_is_missed_until_its_row_has_come() -> None:
    """Thinking for an exponential time t: 1 - exp(-way / t), if nodes take no time; none at a quorum of all.

    Nodes take a millisecond of 100, so the figure is within 2 points.
    """
    idle = np.full(8, 1e-6)
    slow = replace(NEAR, rtt_ms=200.0, think_s=0.1)
    quick: dict[str, Number] = {**VALUES, "wan_extra": np.full(8, 1e-9)}
    found = chance_not_found(scenario(slow), quick, idle, slow, 1)
    assert np.median(found) == pytest.approx(1 - math.exp(-1), abs=0.02)
    assert not chance_not_found(
        scenario(replace(slow, write="QUORUM")), quick, idle, replace(slow, write="QUORUM"), 1
    ).any()


STAGE = SessionStage(
    "s",
    "sessions",
    Layout(dcs=2),
    loads=(SessionLoad("LOCAL_QUORUM", "LOCAL_QUORUM", 5e-3, 40.0, 10.0),),
    bounds=Bounds(10.0, 2, 1.0),
)


@pytest.mark.parametrize(
    ("predicted", "drops", "verdict"),
    [
        (30.0, (33, 33), "inconclusive"),  # 9 % too low; of 200 sessions, so 5.5 more or less
        (30.0, (35, 35), "inconclusive"),
        (30.0, (40, 40), "off"),
        (30.0, (60, 60), "off"),
        (30.0, (20, 60), "inconclusive"),
        (0.0, (0, 0), "within"),
        (0.0, (0, 1), "inconclusive"),  # half a point, and the interval ends above one
        (0.0, (9, 9), "off"),
    ],
)
def test_sessions_not_found_are_judged_as_a_share(
    predicted: float, drops: tuple[int, int], verdict: str, tmp_path: Path
) -> None:
    load = replace(NEAR, think_s=0.005)
    cluster = RunningCluster("5.0", (1, 1), (1, 1), ("a",), "", "k", 2.0, one_host=True)
    rows = sessions_in(Folder(tmp_path))
    for repeat, missed in enumerate(drops, start=1):
        cells = {**row_of(cluster, load, FLOW), "request_class": SESSION, "drops": missed}
        name = run_name(STAGE.name, load, repeat)
        rows.add([LoadTestRow(run_id=name, repeat=repeat, throughput_tps=10.0, duration_s=10.0, **cells)])
    prediction = {"load": load.__dict__, "figures": {SESSION: {"not found": [predicted, predicted, predicted]}}}
    (found,) = session_figures(STAGE, [prediction], sessions_in(Folder(tmp_path)).rows)
    assert found.measured == pytest.approx(sum(drops) / 2)
    assert found.verdict == verdict
