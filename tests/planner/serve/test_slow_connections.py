"""Connections over loopback: how long a request may take to arrive, and which connection makes room for others."""

import asyncio
import json
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn

from capplan.planner.serve import app as faces
from capplan.planner.serve.app import Connection, create_app

HALF = b"POST /predict HTTP/1.1\r\nHost: 127."
WHOLE = HALF + b"0.0.1\r\nContent-Length: 2\r\n\r\n{}"
LONG = 30_000_000  # bytes
SECONDS = 10  # after which a test fails that would wait for ever


class Server(uvicorn.Server):
    """A server that a test ends, and not a signal."""

    def __init__(self, work: Any) -> None:
        config = uvicorn.Config(
            create_app(work=work), http=Connection, log_level="critical", timeout_keep_alive=SECONDS
        )
        super().__init__(config)
        self.listening = socket.create_server(("127.0.0.1", 0))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.config.load()
        self.lifespan = self.config.lifespan_class(self.config)
        await self.startup([self.listening])
        self.force_exit = True  # of a test that fails
        try:
            yield
            self.force_exit = False
        finally:
            await self.shutdown([self.listening])

    async def connected(self, sent: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*self.listening.getsockname())
        writer.write(sent)
        return reader, writer


@pytest.mark.parametrize("sent", [b"", HALF, WHOLE[:-1]], ids=["nothing", "half of the headers", "half of the body"])
def test_a_request_that_does_not_arrive_ends_its_connection_and_no_other(
    sent: bytes, held: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole request, older than it, is still answered; then it gets as little time for the next one."""
    monkeypatch.setattr(faces, "PATIENCE_S", 0.05)

    async def run() -> None:
        server = Server(held)
        async with asyncio.timeout(SECONDS), server.running():
            reader, writer = await server.connected(WHOLE)
            await held.taken.wait()
            slow, slow_writer = await server.connected(sent)
            assert await slow.read() == b""
            held.released.set()
            assert b"200 OK" in await reader.readuntil(b"{}")
            writer.write(HALF)
            assert await reader.read() == b""
            for each in (writer, slow_writer):
                each.close()

    asyncio.run(run())


class Long:
    """Gives an answer that no buffer takes as a whole."""

    async def run(self, _verb: str, _body: Any) -> str:
        return " " * LONG

    def close(self) -> None:
        pass


def test_an_answer_that_is_not_read_ends_its_connection_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faces, "PATIENCE_S", 0.05)

    async def run() -> None:
        server = Server(Long())
        async with asyncio.timeout(SECONDS), server.running():
            unread = socket.create_connection(server.listening.getsockname())
            unread.sendall(WHOLE)
            while not (begun := server.server_state.connections):
                await asyncio.sleep(0)
            while begun:
                await asyncio.sleep(0)
            reader, writer = await server.connected(WHOLE)
            assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
            for each in (unread, writer):
                each.close()

    asyncio.run(run())


def test_requests_that_do_not_wait_for_answers_get_one(held: Any) -> None:
    async def run() -> None:
        server = Server(held)
        held.released.set()
        async with asyncio.timeout(SECONDS), server.running():
            reader, writer = await server.connected(WHOLE * 1000)
            assert (await reader.read()).count(b"200 OK") == 1
            writer.close()

    asyncio.run(run())


def test_what_is_not_http_is_refused_like_everything_else(held: Any) -> None:
    async def run() -> None:
        server = Server(held)
        async with asyncio.timeout(SECONDS), server.running():
            reader, writer = await server.connected(b"HELLO\r\n\r\n")
            status, body = (await reader.read()).split(b"\r\n\r\n")
            assert status.startswith(b"HTTP/1.1 400 ")
            assert list(json.loads(body)) == ["error"]
            writer.close()

    asyncio.run(run())


@pytest.mark.parametrize("sent", [b"", HALF, WHOLE, WHOLE * 1000], ids=["nothing", "half", "whole", "many"])
def test_no_connections_keep_out_a_new_one(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether they send slowly, do not read, or rest after an answer."""
    monkeypatch.setattr(faces, "MOST_CONNECTIONS", 3)

    async def run() -> None:
        server = Server(Long())
        async with asyncio.timeout(SECONDS), server.running():
            others = [await server.connected(sent) for _ in range(5)]
            reader, writer = await server.connected(WHOLE)
            assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
            for each in (writer, *(other for _, other in others)):
                each.transport.abort()

    asyncio.run(run())


@pytest.mark.slow
def test_a_crowd_keeps_nobody_out() -> None:
    """230 connections that never read, 400 slow senders and 50 requests that nobody waits for.

    The crowd stays while a new client asks, and its connections are open on this side even where the server ended them.
    """
    capplan = Path(sys.executable).with_name("capplan")
    command = [str(capplan), "serve", "--port", "0", "--processes", "1"]
    hours = b'{"scenario": {"system": "fedora4", "tps": 100}, "duration": "10h", "engine": "simpy"}'
    abandoned = b"POST /simulate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%b" % (len(hours), hours)
    unread = b"GET /login HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 1000
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process, ExitStack() as crowd:
        assert process.stderr is not None
        crowd.callback(process.terminate)
        port = next(int(found[1]) for line in process.stderr if (found := re.search(r"127\.0\.0\.1:(\d+)", line)))
        for sent, count in ((unread, 230), (HALF, 400), (abandoned, 50)):
            for _ in range(count):
                with suppress(ConnectionError):  # it is one that makes room
                    one = crowd.enter_context(socket.create_connection(("127.0.0.1", port), SECONDS))
                    one.setblocking(False)
                    one.send(sent)
                    if sent is abandoned:
                        one.close()
        for path in ("/healthz", "/systems"):
            assert httpx2.get(f"http://127.0.0.1:{port}{path}", timeout=SECONDS).status_code == 200


def test_the_slowest_request_makes_room(held: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faces, "MOST_CONNECTIONS", 3)

    async def run() -> None:
        server = Server(held)
        async with asyncio.timeout(SECONDS), server.running():
            answered, *writers = await server.connected(WHOLE)
            await held.taken.wait()
            slow = []
            for _ in range(4):
                reader, writer = await server.connected(HALF)
                slow.append(reader)
                writers.append(writer)
            for reader in slow[:2]:
                assert await reader.read() == b""
            held.released.set()
            assert b"200 OK" in await answered.readuntil(b"{}")
            assert len(server.server_state.connections) == 3
            for writer in writers:
                writer.close()

    asyncio.run(run())
