"""The load generator of Cassandra: what it sends, what it measures, and what becomes of requests that fail."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import numpy as np
import pytest

from capplan.errors import InputError
from capplan.lab.collectors.cql import (
    AUTHENTICATE,
    ERROR,
    EXECUTE,
    HEADER,
    PREPARE,
    PREPARED,
    READY,
    RESPONSE,
    RESULT,
    ROWS,
    STARTUP,
    VERSION,
    VOID,
    Asked,
    Connection,
    Flow,
    Loop,
    Statement,
    answering_at_once,
    closed,
    paced,
)
from capplan.lab.collectors.load import arrivals

Answer = tuple[int, bytes] | None
WRITTEN: Answer = RESULT, struct.pack(">i", VOID)
REFUSED: Answer = ERROR, struct.pack(">iH", 0x1000, 11) + b"unavailable"


def rows(count: int) -> Answer:
    """A result without metadata."""
    return RESULT, struct.pack(">iiii", ROWS, 4, 1, count)


@contextmanager
def node(
    answer: Callable[[bytes], Answer], first: Answer = (READY, b""), *, warning: bool = False
) -> Iterator[tuple[int, list[bytes]]]:
    """A node that answers requests as a function says, or closes the connection; yields its port, and what it gets."""
    got: list[bytes] = []

    def serve() -> None:
        connection, _ = listening.accept()
        with connection, connection.makefile("rb") as arrived:
            while header := arrived.read(HEADER.size):
                _, _, stream, code, size = HEADER.unpack(header)
                body = arrived.read(size)
                if code == EXECUTE:
                    got.append(header + body)
                prepared = RESULT, struct.pack(">iH", PREPARED, 2) + b"id"
                said = {STARTUP: first, PREPARE: prepared}.get(code) or answer(body)
                if said is None:
                    return
                said_body = (struct.pack(">HH", 1, 4) + b"slow" if warning else b"") + said[1]
                head = HEADER.pack(VERSION | RESPONSE, 0x08 if warning else 0, stream, said[0], len(said_body))
                connection.sendall(head + said_body)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1], got
    thread.join(10)


def asking(connection: Connection, statement: Statement) -> Callable[[int], Flow]:
    """One request for each number; it fails if no row is found."""

    def flow(number: int) -> Flow:
        yield Asked(connection, statement, number, needs_row=True)

    return flow


def test_a_request_is_a_frame_of_the_protocol() -> None:
    """EXECUTE of version 4: number of the statement, level, flags, and the key and two values with their lengths."""
    with node(lambda _: WRITTEN) as (port, got), closing(Connection("127.0.0.1", port)) as connection:
        insert = Statement([connection], "INSERT", "LOCAL_QUORUM", b"value", b"second")
        Loop([connection]).run(closed(asking(connection, insert), 1, 5.0, 2, first=-7), 5.0)
    assert [struct.unpack(">BBhBi", each[:9])[3] for each in got] == [EXECUTE, EXECUTE]
    assert len(got[0]) - 9 == struct.unpack(">BBhBi", got[0][:9])[4]
    name, level, flags, values, size, key = struct.unpack(">xx2sHBHiq", got[0][9:30])
    assert (name, level, flags, values, size, key) == (b"id", 6, 0x03, 3, 8, -7)
    assert got[0][30:] == struct.pack(">i", 5) + b"value" + struct.pack(">i", 6) + b"second"
    assert struct.unpack(">q", got[1][22:30]) == (-6,)


def test_closed_clients_make_each_request_once_and_measure_it() -> None:
    with answering_at_once() as port, closing(Connection("127.0.0.1", port)) as connection:
        statement, numbers = Statement([connection], "SELECT", "ONE"), list[int]()

        def flow(number: int) -> Flow:
            numbers.append(number)
            yield Asked(connection, statement, number)

        found = Loop([connection]).run(closed(flow, 3, 30.0, 500, first=5), 30.0)
    assert sorted(numbers) == list(range(5, 505))
    assert (found.completed, found.errors, found.paced) == (500, 0, False)
    assert 0 < (found.added_s or 0.0) < np.median(found.latencies_s)
    assert found.latencies_s.sum() <= 3 * found.duration_s


def test_latencies_of_an_open_load_count_from_the_intended_start() -> None:
    """Requests that are all due at the start wait for each other; those due later are not sent before."""
    with answering_at_once() as port, closing(Connection("127.0.0.1", port)) as connection:
        flow = asking(connection, Statement([connection], "SELECT", "ONE"))
        starts = np.array([0.0, 0.0, 0.0, 0.2])
        begun = time.perf_counter()
        found = Loop([connection]).run(paced(flow, starts), 0.2, paced=True)
        took = time.perf_counter() - begun
    assert found.completed == 4
    assert found.paced
    assert took >= 0.2
    assert found.latencies_s.max() < 0.2


def test_no_request_of_a_poisson_stream_is_sent_before_its_time() -> None:
    sent, begun = list[float](), time.perf_counter()
    with answering_at_once() as port, closing(Connection("127.0.0.1", port)) as connection:
        statement = Statement([connection], "SELECT", "ONE")

        def flow(number: int) -> Flow:
            sent.append(time.perf_counter())
            yield Asked(connection, statement, number)

        starts = arrivals(2000.0, 0.5, 10_000, 1)
        found = Loop([connection]).run(paced(flow, starts), 0.5, paced=True)
    assert found.completed == len(sent) == len(starts)
    assert (np.array(sent) - begun >= starts).all()


def test_a_flow_waits_until_its_time() -> None:
    ended: list[float] = []

    def flow(number: int) -> Flow:
        wanted = time.perf_counter() + 0.01 * number
        yield wanted
        ended.append(time.perf_counter() - wanted)

    Loop([]).run(((0.0, flow(each)) for each in (3, 1, 2)), 0.1)
    assert len(ended) == 3
    assert min(ended) >= 0


@pytest.mark.parametrize("answers", [[REFUSED, WRITTEN, REFUSED], [rows(0), rows(1), rows(0)]])
def test_refused_requests_and_missing_rows_are_counted_and_clients_go_on(answers: list[Answer]) -> None:
    turn = iter(answers)
    with node(lambda _: next(turn)) as (port, _), closing(Connection("127.0.0.1", port)) as connection:
        flow = asking(connection, Statement([connection], "SELECT", "ONE"))
        found = Loop([connection]).run(closed(flow, 1, 5.0, 3), 5.0)
    assert (found.completed, found.errors) == (1, 2)


def test_clients_of_a_lost_node_last_as_long_as_the_others_and_the_next_run_is_refused() -> None:
    turn = iter([WRITTEN, None])
    with node(lambda _: next(turn)) as (port, _), closing(Connection("127.0.0.1", port)) as connection:
        flow, loop = asking(connection, Statement([connection], "INSERT", "ONE", b"")), Loop([connection])
        found = loop.run(closed(flow, 1, 0.2, 10_000), 0.2)
        assert found.completed == 1
        assert found.errors > 1
        assert found.duration_s >= 0.2
        with pytest.raises(InputError, match="was lost"):
            loop.run(closed(flow, 1, 0.2, 10_000), 0.2)


def test_warnings_of_a_node_stand_before_its_answer() -> None:
    """Flag 0x08: a list of strings before the body."""
    with node(lambda _: rows(0), warning=True) as (port, _), closing(Connection("127.0.0.1", port)) as connection:
        flow = asking(connection, Statement([connection], "SELECT", "ONE"))
        found = Loop([connection]).run(closed(flow, 1, 5.0, 1), 5.0)
    assert (found.completed, found.errors) == (0, 1)


def test_a_node_that_goes_away_fails_what_is_under_way_and_what_comes() -> None:
    turn = iter([WRITTEN, None])
    with node(lambda _: next(turn)) as (port, _), closing(Connection("127.0.0.1", port)) as connection:
        flow = asking(connection, Statement([connection], "INSERT", "ONE", b""))
        found = Loop([connection]).run(paced(flow, np.array([0.0, 0.05, 0.3])), 0.3, paced=True)
    assert (found.completed, found.errors) == (1, 2)


def test_a_node_that_asks_for_a_user_is_told_apart() -> None:
    with node(lambda _: WRITTEN, (AUTHENTICATE, b"")) as (port, _), pytest.raises(InputError, match="asks for a user"):
        Connection("127.0.0.1", port)


def test_a_node_that_does_not_answer_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(InputError, match=f"no connection to 127.0.0.1, port {port}"):
        Connection("127.0.0.1", port)
