"""The configuration of a lab and what follows from it: nodes with addresses and tokens, their files and commands.

Settings of a node are JSON, which is YAML, too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from capplan.errors import InputError, look_up, one_of

NATIVE_PORT = 9042
ECHO_PORT = 17007
"""Where the proxy between data centres echoes."""
_JMX_PORT = 17100  # of the first node; all listen on one address
_INTERNODE_PORT, _INTERNODE_TLS_PORT = 7000, 7001
_MOST_DCS, _MOST_NODES = 9, 200
_LEAST_HEAP = 128 << 20
_BESIDE_HEAP = 370 << 20  # seen: 621, 876 and 1405 MB with 256, 512 and 1024 MB of heap
_SMALLEST_TOKEN, _TOKENS = -(2**63), 2**64
_MOST_RTT_S = 10.0
_TO_OPEN = ("jdk.internal.ref", "sun.nio.ch", "java.io", "java.nio", "java.util.concurrent", "java.lang")
_TO_EXPORT = (
    *(f"java.base/{name}" for name in ("jdk.internal.misc", "jdk.internal.ref", "sun.nio.ch")),
    *(f"java.rmi/sun.rmi.{name}" for name in ("registry", "server")),
    *(f"java.management{name}" for name in (".rmi/com.sun.jmx.remote.internal.rmi", "/com.sun.jmx.remote.security")),
)
OPENED = (
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _TO_OPEN),
    *(f"--add-exports={package}=ALL-UNNAMED" for package in _TO_EXPORT),
)
"""Options of Java for what its modules keep to themselves, and Cassandra uses."""
_MIB = 1 << 20
_LOGBACK = """<configuration scan="false"><appender name="F" class="ch.qos.logback.core.FileAppender"><file>{log}</file>
<encoder><pattern>%-5level [%thread] %date{{ISO8601}} %F:%L - %msg%n</pattern></encoder></appender>
<root level="INFO"><appender-ref ref="F"/></root></configuration>
"""
PASSWORD = "cassandra"  # noqa: S105  # of key stores that are made for one lab and deleted with it
_NAME = b"lab"
_DAYS = 30
_SIZES = {
    "commitlog_sync_period": (10000, "ms"),
    "commitlog_segment_size": (8, "MiB"),
    "memtable_heap_space": (64, "MiB"),
    "memtable_offheap_space": (64, "MiB"),
    "key_cache_size": (16, "MiB"),
    "file_cache_size": (32, "MiB"),
}


@dataclass(frozen=True)
class CassandraVersion:
    """One version.

    Attributes
    ----------
    release : str
        The exact release, such as `5.0.9`.
    java : int
        Major version of the Java that runs it.
    modules : tuple of str
        Artifacts beside `cassandra-all`.
    units_in_names : bool
        Whether names of settings end in their unit, as before 4.1.
    one_internode_port : bool
        Whether nodes use the port 7000 with TLS, too; before 4.0 it is 7001.
    virtual_tables : bool
        Whether it has the keyspace `system_views`.
    """

    release: str
    java: int
    modules: tuple[str, ...] = ()
    units_in_names: bool = False
    one_internode_port: bool = True
    virtual_tables: bool = True

    @property
    def artifacts(self) -> tuple[str, ...]:
        """Maven coordinates."""
        names = ("cassandra-all", *self.modules)
        return tuple(f"org.apache.cassandra:{name}:{self.release}" for name in names)


VERSIONS = {
    "5.0": CassandraVersion("5.0.9", 17),
    "4.1": CassandraVersion("4.1.10", 11),
    "3.11": CassandraVersion(
        "3.11.19", 11, ("cassandra-thrift",), units_in_names=True, one_internode_port=False, virtual_tables=False
    ),
}
"""What a lab can run, the default first."""
DEFAULT_VERSION = next(iter(VERSIONS))


COLLECTORS = {"g1": "-XX:+UseG1GC", "serial": "-XX:+UseSerialGC", "zgc": "-XX:+UseZGC"}
"""Garbage collectors and how Java is asked for them, the default of Cassandra first."""
_JAVA_OF_ZGC = 15  # from which on it is no experiment
DEFAULT_COLLECTOR = next(iter(COLLECTORS))


def find_version(name: str) -> CassandraVersion:
    """Return a version by its name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    return look_up(VERSIONS, name, f"version {name!r} of Cassandra is not one that a lab runs")


@dataclass(frozen=True)
class Layout:
    """The configuration of a lab.

    Attributes
    ----------
    dcs : int
        Data centres.
    cass_nodes : int
        Nodes of each.
    rf : int
        Replicas of a row in each.
    version : str
        A name of `VERSIONS`.
    heap_bytes : int
        Heap of each node.
    client_tls, internode_tls : bool
        Whether clients may use TLS, and nodes use it among each other.
    collector : str
        Garbage collector of Java, a name of `COLLECTORS`.
    """

    dcs: int = 1
    cass_nodes: int = 1
    rf: int = 1
    version: str = DEFAULT_VERSION
    heap_bytes: int = 512 << 20
    client_tls: bool = False
    internode_tls: bool = False
    collector: str = DEFAULT_COLLECTOR

    def __post_init__(self) -> None:
        if not 1 <= self.dcs <= _MOST_DCS:
            raise InputError(f"--dcs {self.dcs} is impossible in a lab: give 1 to {_MOST_DCS}")
        if not 1 <= self.cass_nodes <= _MOST_NODES:
            raise InputError(f"--cass-nodes {self.cass_nodes} is impossible in a lab: give 1 to {_MOST_NODES}")
        if not 1 <= self.rf <= self.cass_nodes:
            raise InputError(
                f"--rf {self.rf} is impossible with --cass-nodes {self.cass_nodes}: a node holds a row once"
            )
        if self.heap_bytes < _LEAST_HEAP:
            raise InputError(f"--heap of {self.heap_bytes:,} bytes is too small for Cassandra: give at least 128MiB")
        find_version(self.version)
        one_of(COLLECTORS, self.collector, f"--collector {self.collector!r} is no collector of a lab")

        if self.collector == "zgc" and self.release.java < _JAVA_OF_ZGC:
            raise InputError(
                f"--collector zgc needs Java {_JAVA_OF_ZGC}, and Cassandra {self.version} runs on an older one"
            )

    @property
    def release(self) -> CassandraVersion:
        """The Cassandra version."""
        return find_version(self.version)

    @property
    def memory_bytes(self) -> int:
        """Memory of all nodes together."""
        return self.dcs * self.cass_nodes * (self.heap_bytes + _BESIDE_HEAP)

    @property
    def delayed(self) -> bool:
        """Whether traffic between data centres passes a proxy that delays it."""
        return self.dcs > 1

    @property
    def internode_port(self) -> int:
        """The port for traffic between nodes."""
        own = self.internode_tls and not self.release.one_internode_port
        return _INTERNODE_TLS_PORT if own else _INTERNODE_PORT

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, data centre by data centre."""
        pairs = [(dc, number) for dc in range(1, self.dcs + 1) for number in range(1, self.cass_nodes + 1)]
        return tuple(Node(dc, number, _token(self.cass_nodes, dc, number), self.delayed) for dc, number in pairs)

    def node(self, name: str) -> Node:
        """Return a node by its name.

        Raises
        ------
        InputError
            If there is none of that name.
        """
        return look_up({each.name: each for each in self.nodes}, name, f"{name!r} is not a node of the lab")


@dataclass(frozen=True)
class Node:
    """One node."""

    dc: int
    number: int
    token: int
    delayed: bool

    @property
    def name(self) -> str:
        """The node's name, such as `dc1-2`."""
        return f"dc{self.dc}-{self.number}"

    @property
    def address(self) -> str:
        """The address on which the node listens."""
        return f"127.0.{self.dc - 1}.{self.number}"

    @property
    def broadcast(self) -> str:
        """The address that other data centres use: the proxy's, if there is one."""
        return f"127.0.{self.dc + 9}.{self.number}" if self.delayed else self.address

    @property
    def jmx_port(self) -> int:
        """The port of 127.0.0.1 at which `nodetool` reaches the node."""
        return _JMX_PORT + _MOST_NODES * (self.dc - 1) + self.number


def _token(nodes: int, dc: int, number: int) -> int:
    """Return a node's token: the nodes of a data centre own equal ranges, and no two nodes share a token."""
    return _SMALLEST_TOKEN + (number - 1) * (_TOKENS // nodes) + 100 * dc


def check_rtt(rtt_s: float) -> float:
    """Return a round trip if the proxy can delay that long; refuse it otherwise.

    Raises
    ------
    InputError
        If it is longer than ten seconds.
    """
    if rtt_s > _MOST_RTT_S:
        raise InputError(f"a round trip of {rtt_s:g} s between data centres is too long: give at most 10 s")
    return rtt_s


def system_log(folder: Path) -> Path:
    """Return the system log of the node in a folder."""
    return folder / "system.log"


def console_log(folder: Path) -> Path:
    """Return the log of the output of a node's Java process."""
    return folder / "console.log"


def gc_log(folder: Path) -> Path:
    """Return the garbage-collection log of the node in a folder."""
    return folder / "gc.log"


def write_node(layout: Layout, node: Node, folder: Path, tls: Path) -> None:
    """Write a node's files to its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cassandra.yaml").write_text(json.dumps(settings(layout, node, folder, tls), indent=1), encoding="utf-8")
    place = f"dc=dc{node.dc}\nrack=r1\nprefer_local=true\n"
    (folder / "cassandra-rackdc.properties").write_text(place, encoding="utf-8")
    (folder / "logback.xml").write_text(_LOGBACK.format(log=system_log(folder)), encoding="utf-8")


def settings(layout: Layout, node: Node, folder: Path, tls: Path) -> dict[str, Any]:
    """Return a node's settings for `cassandra.yaml`."""
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
    """Return the settings that limit a node's memory."""
    if units_in_names:
        old = {"ms": "ms", "MiB": "mb"}
        return {f"{name}_in_{old[unit]}": value for name, (value, unit) in _SIZES.items()}
    return {name: f"{value}{unit}" for name, (value, unit) in _SIZES.items()}


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


def command(layout: Layout, node: Node, folder: Path, java: Path, jars: Sequence[Path]) -> list[str]:
    """Return the command that starts a node."""
    heap = f"{layout.heap_bytes // _MIB}M"
    properties = {
        "cassandra.storagedir": str(folder),
        "cassandra.logdir": str(folder),
        "cassandra.config": f"file://{folder / 'cassandra.yaml'}",
        "cassandra-rackdc.properties": f"file://{folder / 'cassandra-rackdc.properties'}",
        "logback.configurationFile": str(folder / "logback.xml"),
        "cassandra.jmx.local.port": str(node.jmx_port),
        "cassandra.ring_delay_ms": "1000",
        "cassandra.skip_wait_for_gossip_to_settle": "0",
        "jdk.attach.allowAttachSelf": "true",
        "java.io.tmpdir": str(folder),
        "java.awt.headless": "true",
    }
    return [
        str(java),
        *(f"-Xm{end}{heap}" for end in "sx"),
        *(COLLECTORS[layout.collector], "-XX:MaxDirectMemorySize=128M", "-Xss512k", "-XX:+ExitOnOutOfMemoryError"),
        "-XX:-UsePerfData",  # which would leave a file in the folder of temporary files
        f"-Xlog:gc:file={gc_log(folder)}:time,uptime:filecount=0",
        *OPENED,
        *(f"-D{name}={value}" for name, value in properties.items()),
        *("-cp", os.pathsep.join([str(folder), *map(str, jars)])),
        "org.apache.cassandra.service.CassandraDaemon",
    ]


def write_stores(folder: Path, addresses: Iterable[str]) -> None:
    """Write `keys.p12`, `trusted.p12` and `certificate.pem` for servers at the given addresses."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, pkcs12

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "capplan lab")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address(each)) for each in addresses]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    password = BestAvailableEncryption(PASSWORD.encode())
    folder.mkdir(parents=True, exist_ok=True)
    keys = pkcs12.serialize_key_and_certificates(_NAME, key, certificate, None, password)
    trusted = pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(certificate, _NAME)], password)
    (folder / "keys.p12").write_bytes(keys)
    (folder / "trusted.p12").write_bytes(trusted)
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
