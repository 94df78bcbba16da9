"""The delay between data centres: bytes arrive whole, in order and no sooner than asked, also while it changes."""

import json
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest

from capplan.lab import processes

OUTSIDE, INSIDE = "127.0.10.1", "127.0.0.1"


class Proxy:
    """The proxy as a process of its own, in front of its echo."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as one, socket.socket() as other:
            one.bind((INSIDE, 0))
            self.port = int(one.getsockname()[1])
            other.bind((OUTSIDE, self.port))
        self.path = folder / "delay.json"
        self.write(0.0)
        command = [sys.executable, "-m", "capplan.lab.delay_proxy", str(self.path)]
        self.process = processes.start(command, folder / "log", lambda _: None)

    def write(self, rtt_s: float) -> None:
        forward, echo = [[OUTSIDE, INSIDE, self.port]], [[INSIDE, self.port]]
        self.path.write_text(json.dumps({"rtt_s": rtt_s, "forward": forward, "echo": echo}), encoding="utf-8")

    def delay(self, rtt_s: float) -> None:
        self.write(rtt_s)
        processes.send(self.process, signal.SIGHUP)

    def connect(self) -> socket.socket:
        while True:
            try:
                return socket.create_connection((OUTSIDE, self.port))
            except ConnectionRefusedError:
                assert self.process.alive


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    found = Proxy(tmp_path_factory.mktemp("proxy"))
    yield found
    processes.stop([found.process])
    assert not found.process.alive


def received(connection: socket.socket, size: int) -> bytes:
    with connection.makefile("rb") as stream:
        return stream.read(size)


def until(proxy: Proxy, connection: socket.socket, holds: Callable[[float], bool]) -> float:
    """Exchange until the proxy has read its file again; return the time of the last exchange."""
    while True:
        began = time.perf_counter()
        connection.sendall(b"ping")
        assert received(connection, 4) == b"ping"
        took_s = time.perf_counter() - began
        if holds(took_s):
            return took_s
        assert proxy.process.alive


def test_bytes_arrive_whole_and_in_order(proxy: Proxy) -> None:
    sent = bytes(range(256)) * 4096
    with proxy.connect() as connection:

        def send() -> None:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)

        sender = Thread(target=send)
        sender.start()
        assert received(connection, -1) == sent  # until the end of the stream, which is passed on, too
        sender.join()


def test_no_answer_comes_before_a_round_trip_whatever_it_is_now(proxy: Proxy) -> None:
    with proxy.connect() as connection:
        proxy.delay(0.04)
        until(proxy, connection, lambda took_s: took_s >= 0.04)
        for _ in range(3):
            began = time.perf_counter()
            connection.sendall(b"ping")
            assert received(connection, 4) == b"ping"
            assert time.perf_counter() - began >= 0.04
        proxy.delay(0.0)
        until(proxy, connection, lambda took_s: took_s < 0.04)


def test_order_is_kept_when_the_round_trip_becomes_shorter(proxy: Proxy) -> None:
    with proxy.connect() as connection:
        proxy.delay(0.05)
        until(proxy, connection, lambda took_s: took_s >= 0.05)
        connection.sendall(b"slow")
        proxy.delay(0.0)
        connection.sendall(b"fast")
        assert received(connection, 8) == b"slowfast"
