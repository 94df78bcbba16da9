"""The files of a node: its settings, its place in the cluster, its log; and the command that starts it.

Settings are JSON, which is YAML, too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from capplan.lab.layout import NATIVE_PORT, Layout, Node
from capplan.lab.versions import module_flags

_MIB = 1 << 20
_LOGBACK = """<configuration scan="false"><appender name="F" class="ch.qos.logback.core.FileAppender"><file>{log}</file>
<encoder><pattern>%-5level [%thread] %date{{ISO8601}} %F:%L - %msg%n</pattern></encoder></appender>
<root level="INFO"><appender-ref ref="F"/></root></configuration>
"""
PASSWORD = "cassandra"  # noqa: S105  # of key stores that are made for one lab and deleted with it


def system_log(folder: Path) -> Path:
    """Return the log of the node whose folder it is."""
    return folder / "system.log"


def console_log(folder: Path) -> Path:
    """Return what Java prints that runs the node."""
    return folder / "console.log"


def gc_log(folder: Path) -> Path:
    """Return the log of the garbage collector of the node whose folder it is."""
    return folder / "gc.log"


def write_node(layout: Layout, node: Node, folder: Path, tls: Path) -> None:
    """Write the files of a node into its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cassandra.yaml").write_text(json.dumps(settings(layout, node, folder, tls), indent=1), encoding="utf-8")
    place = f"dc=dc{node.dc}\nrack=r1\nprefer_local=true\n"
    (folder / "cassandra-rackdc.properties").write_text(place, encoding="utf-8")
    (folder / "logback.xml").write_text(_LOGBACK.format(log=system_log(folder)), encoding="utf-8")


def settings(layout: Layout, node: Node, folder: Path, tls: Path) -> dict[str, Any]:
    """Return the settings of a node, as `cassandra.yaml` has them."""
    seeds = ",".join(each.broadcast for each in layout.nodes if each.number == 1)
    found: dict[str, Any] = {
        "cluster_name": "capplan lab",
        "num_tokens": 1,
        "initial_token": str(node.token),
        "auto_bootstrap": False,
        "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
        "endpoint_snitch": "GossipingPropertyFileSnitch",
        "listen_address": node.address,
        "rpc_address": node.address,
        "native_transport_port": NATIVE_PORT,
        "start_native_transport": True,
        "seed_provider": [
            {"class_name": "org.apache.cassandra.locator.SimpleSeedProvider", "parameters": [{"seeds": seeds}]}
        ],
        "commitlog_sync": "periodic",
        "disk_optimization_strategy": "ssd",
        "auto_snapshot": False,
        "data_file_directories": [str(folder / "data")],
        "commitlog_directory": str(folder / "commitlog"),
        "saved_caches_directory": str(folder / "saved_caches"),
        "hints_directory": str(folder / "hints"),
        **_sizes(layout.release.units_in_names),
        **_encryption(layout, tls),
    }
    if node.broadcast != node.address:
        found["broadcast_address"] = node.broadcast
    if layout.release.units_in_names:
        found["start_rpc"] = False  # Thrift
    return found


def _sizes(units_in_names: bool) -> dict[str, Any]:
    """Return what keeps a node small."""
    if units_in_names:
        return {
            "commitlog_sync_period_in_ms": 10000,
            "commitlog_segment_size_in_mb": 8,
            "memtable_heap_space_in_mb": 64,
            "memtable_offheap_space_in_mb": 64,
            "key_cache_size_in_mb": 16,
            "file_cache_size_in_mb": 32,
        }
    return {
        "commitlog_sync_period": "10000ms",
        "commitlog_segment_size": "8MiB",
        "memtable_heap_space": "64MiB",
        "memtable_offheap_space": "64MiB",
        "key_cache_size": "16MiB",
        "file_cache_size": "32MiB",
    }


def _encryption(layout: Layout, tls: Path) -> dict[str, Any]:
    keys = {"keystore": str(tls / "keys.p12"), "keystore_password": PASSWORD, "store_type": "PKCS12"}
    trusted = {"truststore": str(tls / "trusted.p12"), "truststore_password": PASSWORD}
    found: dict[str, Any] = {}
    if layout.client_tls:  # plain clients may connect, too, so that both are measured on one warm node
        found["client_encryption_options"] = {"enabled": True, "optional": True, "require_client_auth": False, **keys}
    if layout.internode_tls:
        found["server_encryption_options"] = {
            "internode_encryption": "all",
            "require_client_auth": True,
            **keys,
            **trusted,
        }
    return found


def command(layout: Layout, folder: Path, java: Path, jars: Sequence[Path]) -> list[str]:
    """Return the command that runs a node."""
    heap = f"{layout.heap_bytes // _MIB}M"
    properties = {
        "cassandra.storagedir": str(folder),
        "cassandra.logdir": str(folder),
        "cassandra.config": f"file://{folder / 'cassandra.yaml'}",
        "cassandra-rackdc.properties": f"file://{folder / 'cassandra-rackdc.properties'}",
        "logback.configurationFile": str(folder / "logback.xml"),
        "cassandra.ring_delay_ms": "1000",
        "cassandra.skip_wait_for_gossip_to_settle": "0",
        "jdk.attach.allowAttachSelf": "true",
        "java.io.tmpdir": str(folder),
        "java.awt.headless": "true",
    }
    return [
        str(java),
        *(f"-Xm{end}{heap}" for end in "sx"),
        *("-XX:+UseSerialGC", "-XX:MaxDirectMemorySize=128M", "-Xss512k", "-XX:+ExitOnOutOfMemoryError"),
        "-XX:-UsePerfData",  # which would leave a file in the folder of temporary files
        f"-Xlog:gc:file={gc_log(folder)}:uptime:filecount=0",
        *(() if layout.optimise else ("-XX:TieredStopAtLevel=1",)),
        *module_flags(),
        *(f"-D{name}={value}" for name, value in properties.items()),
        *("-cp", os.pathsep.join([str(folder), *map(str, jars)])),
        "org.apache.cassandra.service.CassandraDaemon",
    ]
