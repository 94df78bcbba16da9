"""The least of Cassandra's native protocol (version 4) that times a connection: start up, and ask a question."""

from __future__ import annotations

import socket
import struct

from capplan.lab.collectors.measurement.exchanges import receive
from capplan.models.errors import InputError

_VERSION = 0x04
_STARTUP, _READY, _QUERY, _ERROR = 0x01, 0x02, 0x07, 0x00
_LOCAL_ONE = 0x000A
_OPTIONS = b"\x00\x01\x00\x0bCQL_VERSION\x00\x053.0.0"


def start_up(connection: socket.socket) -> None:
    """Start a connection.

    Raises
    ------
    InputError
        If the server does not take it.
    """
    opcode, _ = _ask(connection, _STARTUP, _OPTIONS)
    if opcode != _READY:
        raise InputError(f"Cassandra did not start the connection (opcode {opcode})")


def query(connection: socket.socket, text: str) -> int:
    """Ask a question, and return how many bytes the answer has.

    Raises
    ------
    InputError
        If the answer is an error.
    """
    asked = text.encode()
    opcode, body = _ask(connection, _QUERY, struct.pack(">i", len(asked)) + asked + struct.pack(">HB", _LOCAL_ONE, 0))
    if opcode == _ERROR:
        raise InputError(f"Cassandra refused {text!r}: {body[6:].decode(errors='replace')}")
    return len(body)


def _ask(connection: socket.socket, opcode: int, body: bytes) -> tuple[int, bytes]:
    connection.sendall(struct.pack(">BBHBi", _VERSION, 0, 0, opcode, len(body)) + body)
    head = receive(connection, 9)
    return head[4], receive(connection, struct.unpack(">i", head[5:])[0])
