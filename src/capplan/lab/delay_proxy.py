"""The delay between data centres: a TCP proxy at the addresses that nodes in other data centres use.

Each chunk of bytes is passed on half a round trip after it came, in order. A new connection waits a whole round trip,
as the handshake of TCP would. It runs as a process of its own, `python -m capplan.lab.delay_proxy FILE`.
The file names what to forward, where to echo, and the round trip; at SIGHUP the proxy reads the round trip again.
"""

from __future__ import annotations

import asyncio
import json
import selectors
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

Accepted = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
_CHUNK = 1 << 16
_MOST_WAITING = 1 << 24  # bytes of one direction of a connection that are on their way


class DelayProxy:
    """Forwards the connections that one file lists."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rtt_s = 0.0
        self.read()

    def read(self) -> None:
        """Read the round trip again."""
        self.rtt_s = float(json.loads(self.path.read_text(encoding="utf-8"))["rtt_s"])

    async def serve(self) -> None:
        """Forward until the process is stopped."""
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self.read)
        loop.add_signal_handler(signal.SIGTERM, stopped.set)
        asked = json.loads(self.path.read_text(encoding="utf-8"))
        for address, port in asked["echo"]:
            await asyncio.start_server(_echo, address, port)
        for source, target, port in asked["forward"]:
            await asyncio.start_server(self._accept(target, port), source, port)
        await stopped.wait()

    def _accept(self, target: str, port: int) -> Accepted:
        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(self.rtt_s)
            try:
                inner_reader, inner_writer = await asyncio.open_connection(target, port)
            except OSError:
                writer.close()
                return
            ways = (self._pass(reader, inner_writer), self._pass(inner_reader, writer))
            with suppress(ConnectionError):
                await asyncio.gather(*ways)
            for each in (writer, inner_writer):
                each.close()

        return accepted

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass bytes on, each chunk half a round trip after its arrival."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_MOST_WAITING // _CHUNK)

        async def deliver() -> None:
            while True:
                due, chunk = await waiting.get()
                if (left := due - loop.time()) > 0:
                    await asyncio.sleep(left)
                if not chunk:
                    writer.write_eof()
                    return
                writer.write(chunk)
                await writer.drain()

        async def receive() -> None:
            due, chunk = 0.0, b"first"
            while chunk:
                try:
                    chunk = await reader.read(_CHUNK)
                except ConnectionError:
                    chunk = b""
                due = max(due, loop.time() + self.rtt_s / 2)  # in order, when the round trip becomes shorter
                await waiting.put((due, chunk))

        with suppress(ConnectionError, OSError):
            await asyncio.gather(deliver(), receive())


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Echo all bytes, so that a round trip through the proxy can be measured without Cassandra."""
    with suppress(ConnectionError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
    writer.close()


def main() -> None:
    """Forward the connections of the file on the command line."""
    # select() waits to the microsecond, epoll only to the millisecond
    loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
    asyncio.set_event_loop(loop)
    loop.run_until_complete(DelayProxy(Path(sys.argv[1])).serve())


if __name__ == "__main__":
    main()
