"""Connections over loopback: how long a request may take to arrive, and which connection makes room for others."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn

from capplan.planner.serve import app as faces
from capplan.planner.serve.app import Connection, create_app

HALF = b"POST /predict HTTP/1.1\r\nHost: 127."
WHOLE = HALF + b"0.0.1\r\nContent-Length: 2\r\n\r\n{}"
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
    monkeypatch.setattr(faces, "ARRIVAL_S", 0.05)

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
