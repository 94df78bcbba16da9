"""RADIUS: an authentication that a FreeRADIUS server answers itself, and one that it proxies to a second server."""

from __future__ import annotations

import asyncio
import io
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from capplan.errors import check_extra
from capplan.lab.collectors import servers
from capplan.lab.collectors.collector import Collected, Forecast, Progress, Settings
from capplan.lab.collectors.load import Request
from capplan.lab.collectors.servers import LOOPBACK, Expectation, Subject, measure
from capplan.lab.processes import Process

FRONT, HOME = "front", "home server"
PLAIN, PROXIED = "request", "proxied request"
_NAMES = {PLAIN: "bob", PROXIED: "carol"}
_SECRET, _PASSWORD = "testing123", "hello"  # of made-up users
_THREADS = 16
_LIBRARIES = ("/usr/lib/freeradius", "/usr/lib64/freeradius", "/usr/local/lib/freeradius")
_CONFIGURATION = """\
prefix = {folder}
{libraries}logdir = {folder}
run_dir = {folder}
pidfile = {folder}/radiusd.pid
name = radiusd
max_request_time = 30
cleanup_delay = 0
max_requests = 16384
log {{
 destination = stdout
}}
client loopback {{
 ipaddr = 127.0.0.1
 secret = {secret}
 require_message_authenticator = no
}}
thread pool {{
 start_servers = {threads}
 max_servers = {threads}
 min_spare_servers = 1
 max_spare_servers = {threads}
 max_requests_per_server = 0
}}
modules {{
 pap {{
 }}
 files {{
  filename = {folder}/users
 }}
}}
{proxy}
server default {{
 listen {{
  type = auth
  ipaddr = 127.0.0.1
  port = {port}
 }}
 authorize {{
  files
  pap
 }}
 authenticate {{
  pap
 }}
}}
"""
_PROXY = """\
proxy_requests = yes
proxy server {{
 retry_delay = 5
}}
home_server home {{
 type = auth
 ipaddr = 127.0.0.1
 port = {port}
 secret = {secret}
 status_check = none
}}
home_server_pool homes {{
 home_server = home
}}
realm home {{
 auth_pool = homes
 nostrip
}}
"""
_NO_PROXY = "proxy_requests = no"
_DICTIONARY = "ATTRIBUTE User-Name 1 string\nATTRIBUTE User-Password 2 string\nATTRIBUTE Reply-Message 18 string\n"
_TIMEOUT_S = 5
_MOST_UNDER_WAY = 250  # a port of RADIUS has 256 numbers for requests
_MODEL = "openprovider: a message that is passed on takes front_s twice, once for itself and once for the proxy"


def collect(settings: Settings, progress: Progress, forecast: Forecast) -> Collected:
    """Measure requests that a server answers itself and requests that it proxies.

    Raises
    ------
    MissingError
        If FreeRADIUS or pyrad is not installed.
    """
    check_extra("lab", "pyrad")
    program = servers.needed_program(("freeradius", "radiusd"), "freeradius")
    home_users = f'{_NAMES[PROXIED]} Cleartext-Password := "{_PASSWORD}"\n'
    front_users = f'{_NAMES[PLAIN]} Cleartext-Password := "{_PASSWORD}"\n{_NAMES[PROXIED]} Proxy-To-Realm := "home"\n'
    with _freeradius(program, home_users, _NO_PROXY) as (home, home_port):
        proxy = _PROXY.format(port=home_port, secret=_SECRET)
        with _freeradius(program, front_users, proxy) as (front, port):
            asking = _requests({FRONT: front, HOME: home}, port, servers.version_of(program, "-v"))
            return measure(asking, settings, progress, forecast)


@contextmanager
def _freeradius(program: str, users: str, proxy: str) -> Iterator[tuple[Process, int]]:
    """Run a server; yield its process and its port."""
    with servers.own_folder("radius") as folder:
        port, log = servers.free_port(socket.SOCK_DGRAM), folder / "log"
        found = servers.existing(_LIBRARIES)
        libraries = f"libdir = {found}\n" if found else ""
        (folder / "users").write_text(users, encoding="ascii")
        text = _CONFIGURATION.format(
            folder=folder, libraries=libraries, secret=_SECRET, threads=_THREADS, proxy=proxy, port=port
        )
        (folder / "radiusd.conf").write_text(text, encoding="utf-8")
        command, ready = [program, "-f", "-d", str(folder)], "Ready to process requests"
        with servers.running("FreeRADIUS", command, log, lambda: servers.says(log, ready)) as process:
            yield process, port


@asynccontextmanager
async def _requests(parts: dict[str, Process], port: int, version: str) -> AsyncIterator[Subject]:
    """Yield requests of both kinds."""
    from pyrad.client_async import ClientAsync
    from pyrad.dictionary import Dictionary

    client = ClientAsync(
        server=LOOPBACK,
        auth_port=port,
        secret=_SECRET.encode(),
        dict=Dictionary(io.StringIO(_DICTIONARY)),
        timeout=_TIMEOUT_S,
        retries=0,
    )
    await client.initialize_transports(enable_auth=True)
    kinds = {kind: _request(client, name) for kind, name in _NAMES.items()}
    expected = {PROXIED: Expectation(PLAIN, FRONT, 2.0, _MODEL)}
    conditions = f"PAP, users of a file, {_THREADS} threads, UDP, Message-Authenticator"
    try:
        yield Subject("radius", "FreeRADIUS", version, parts, kinds, conditions, expected)
    finally:
        await client.deinitialize_transports()


def _request(client: Any, name: str) -> Request:
    from pyrad.packet import AccessAccept

    room = asyncio.Semaphore(_MOST_UNDER_WAY)

    async def request(_: int) -> None:
        async with room:
            packet = client.CreateAuthPacket(User_Name=name)
            packet["User-Password"] = packet.PwCrypt(_PASSWORD)
            answer = await client.SendPacket(packet)
        if answer.code != AccessAccept:
            raise OSError(f"FreeRADIUS answered {name} with code {answer.code}")

    return request
