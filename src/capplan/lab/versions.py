"""Versions of Cassandra that a lab can run: their jars, their Java, and how their settings are spelled."""

from __future__ import annotations

from dataclasses import dataclass

from capplan.models.errors import InputError, nearest

_OPENED = ("jdk.internal.ref", "sun.nio.ch", "java.io", "java.nio", "java.util.concurrent", "java.lang")
_EXPORTED = ("java.base/jdk.internal.misc", "java.base/jdk.internal.ref", "java.base/sun.nio.ch")


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


def find_version(name: str) -> CassandraVersion:
    """Return a version by its name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if name not in VERSIONS:
        raise InputError(f"version {name!r} of Cassandra is not one that a lab runs{nearest(name, VERSIONS)}")
    return VERSIONS[name]


def module_flags() -> list[str]:
    """Return the flags by which Java lets Cassandra use what its modules keep to themselves."""
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
    return [*opened, *(f"--add-exports={package}=ALL-UNNAMED" for package in _EXPORTED)]
