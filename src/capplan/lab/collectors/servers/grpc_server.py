"""A gRPC server that echoes: one method for single calls, one for streams. It ends when its standard input does.

It runs as a process of its own: `python -m capplan.lab.collectors.servers.grpc_server`, and prints its port.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

SERVICE = "capplan.Echo"
UNARY, STREAM = "Unary", "Stream"


async def _unary(request: bytes, context: Any) -> bytes:
    del context
    return request


async def _stream(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
    del context
    async for each in requests:
        yield each


async def _serve() -> None:
    import grpc

    server = grpc.aio.server()
    methods = {
        UNARY: grpc.unary_unary_rpc_method_handler(_unary),
        STREAM: grpc.stream_stream_rpc_method_handler(_stream),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop(None)


if __name__ == "__main__":
    asyncio.run(_serve())
