"""LDAP: a search and a bind at a slapd of its own. ldap3 encodes and decodes messages; the event loop sends them."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from capplan.errors import InputError, check_extra
from capplan.lab.collectors import servers
from capplan.lab.collectors.collector import Collected, Forecast, Progress, Settings
from capplan.lab.collectors.servers import LOOPBACK, Subject, measure
from capplan.lab.processes import Process, connects

SUFFIX = "dc=lab"
ENTRIES = 250
_PASSWORD = "hello"  # noqa: S105  # of made-up entries
_MODULES = ("/usr/lib/ldap", "/usr/lib/openldap", "/usr/lib64/openldap")
_SCHEMAS = ("/etc/ldap/schema", "/etc/openldap/schema")
_CONFIGURATION = """\
{modules}include {schema}/core.schema
include {schema}/cosine.schema
include {schema}/inetorgperson.schema
pidfile {folder}/slapd.pid
database mdb
maxsize 268435456
suffix "{suffix}"
directory {folder}/database
index uid eq
index objectClass eq
"""
_SUCCESS = 0
_ENTRY, _RESULT = 4, (1, 5)  # tags of an entry, and of the end of a bind and of a search
_CHUNK = 1 << 14
_MOST_CONNECTIONS = 256


def collect(settings: Settings, progress: Progress, forecast: Forecast) -> Collected:
    """Measure searches and binds.

    Raises
    ------
    MissingError
        If slapd or ldap3 is not installed.
    """
    check_extra("lab", "ldap3")
    program = servers.needed_program(("slapd",), "slapd")
    schema = servers.existing(_SCHEMAS)
    if schema is None:
        raise InputError(f"the schemas of slapd are not in {' or '.join(_SCHEMAS)}: install them, then try again")
    modules = servers.existing(_MODULES)
    with servers.own_folder("ldap") as folder:
        configuration, log, port = folder / "slapd.conf", folder / "log", servers.free_port()
        (folder / "database").mkdir()
        loaded = f"modulepath {modules}\nmoduleload back_mdb\n" if modules else ""
        text = _CONFIGURATION.format(modules=loaded, schema=schema, folder=folder, suffix=SUFFIX)
        configuration.write_text(text, encoding="utf-8")
        _add_entries(program, configuration, folder / "entries.ldif")
        address = f"ldap://{LOOPBACK}:{port}"
        command = [program, "-d", "0", "-h", address, "-f", str(configuration)]  # -d keeps slapd in the foreground
        with servers.running("slapd", command, log, lambda: connects(LOOPBACK, port)) as process:
            looking_up = _look_ups(process, port, servers.version_of(program, "-VV"))
            return measure(looking_up, settings, progress, forecast)


def _add_entries(program: str, configuration: Path, ldif: Path) -> None:
    root = f"dn: {SUFFIX}\nobjectClass: dcObject\nobjectClass: organization\no: lab\ndc: lab\n"
    ldif.write_text("\n".join((root, *map(_entry, range(ENTRIES)))), encoding="ascii")
    command = [program, "-T", "add", "-q", "-f", str(configuration), "-l", str(ldif)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # slapd's own tool
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
        raise InputError(f"slapd cannot load its entries: {last}")


def _entry(number: int) -> str:
    name = f"user{number}"
    lines = [f"dn: {_dn(number)}", "objectClass: inetOrgPerson", f"uid: {name}", f"cn: {name}", "sn: lab"]
    return "\n".join((*lines, f"mail: {name}@example.org", f"userPassword: {_PASSWORD}", ""))


def _dn(number: int) -> str:
    return f"uid=user{number},{SUFFIX}"


@asynccontextmanager
async def _look_ups(process: Process, port: int, version: str) -> AsyncIterator[Subject]:
    """Yield searches and binds, each with connections of its own."""
    searches, binds = _Connections(port, search_messages()), _Connections(port, bind_messages())
    kinds = {"search": searches.request, "bind": binds.request}
    conditions = f"{ENTRIES} entries in memory, indexed by uid; no TLS; a connection for each request under way"
    try:
        yield Subject("ldap", "OpenLDAP slapd", version, {"slapd": process}, kinds, conditions)
    finally:
        searches.close()
        binds.close()


def search_messages() -> list[bytes]:
    """Return the request for each entry by its uid, as sent."""
    from ldap3 import DEREF_NEVER, SUBTREE
    from ldap3.operation.search import search_operation

    return [
        _message(
            "searchRequest",
            search_operation(SUFFIX, f"(uid=user{each})", SUBTREE, DEREF_NEVER, ["mail"], 0, 0, False, True, True),
        )
        for each in range(ENTRIES)
    ]


def bind_messages() -> list[bytes]:
    """Return the bind request for each entry, as sent."""
    from ldap3 import SIMPLE
    from ldap3.operation.bind import bind_operation

    return [_message("bindRequest", bind_operation(3, SIMPLE, _dn(each), _PASSWORD)) for each in range(ENTRIES)]


def _message(name: str, request: object) -> bytes:
    from ldap3.protocol.rfc4511 import LDAPMessage, MessageID, ProtocolOp
    from pyasn1.codec.ber.encoder import encode

    message = LDAPMessage()
    message["messageID"] = MessageID(1)  # one request at a time is under way on a connection
    message["protocolOp"] = ProtocolOp().setComponentByName(name, request)
    return bytes(encode(message))


def decoded(message: bytes) -> tuple[int, int]:
    """Return the tag and result code of an answer; the code is 0 for an answer without one."""
    from ldap3.utils.asn1 import decode_message_fast

    found = decode_message_fast(message)  # type: ignore[no-untyped-call]  # of ldap3
    tag = int(found["protocolOp"])
    return tag, int(found["payload"][0][3]) if tag in _RESULT else _SUCCESS


def _size(received: bytes) -> int:
    """Return the size of the first message; -1 if too few bytes have arrived."""
    from ldap3.strategy.base import BaseStrategy

    return int(BaseStrategy.compute_ldap_message_size(received))  # type: ignore[no-untyped-call]  # of ldap3


_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Connections:
    """Open connections; a request takes a free one, opens a new one, or waits if too many are open."""

    def __init__(self, port: int, messages: Sequence[bytes]) -> None:
        self._port, self._messages = port, messages
        self._free: list[_Connection] = []
        self._room = asyncio.Semaphore(_MOST_CONNECTIONS)

    async def request(self, number: int) -> None:
        async with self._room:
            connection = self._free.pop() if self._free else await asyncio.open_connection(LOOPBACK, self._port)
            try:
                await _exchange(connection, self._messages[number % len(self._messages)])
            except BaseException:
                connection[1].close()
                raise
            self._free.append(connection)

    def close(self) -> None:
        for _, writer in self._free:
            writer.close()


async def _exchange(connection: _Connection, message: bytes) -> None:
    """Send a request and wait for the end of its answer, which must report success."""
    reader, writer = connection
    writer.write(message)
    left, tag, code, entries = b"", _ENTRY, _SUCCESS, 0
    while tag not in _RESULT:
        while not 0 <= (size := _size(left)) <= len(left):
            chunk = await reader.read(_CHUNK)
            if not chunk:
                raise ConnectionError("slapd closed the connection")
            left += chunk
        tag, code = decoded(left[:size])
        left, entries = left[size:], entries + (tag == _ENTRY)
    if code != _SUCCESS or (tag != _RESULT[0] and entries != 1):
        raise OSError(f"slapd answered with code {code} and {entries} entries")
