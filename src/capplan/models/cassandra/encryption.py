"""What encrypted links cost the processors at their ends, as shares of the cost of one plain operation.

An *exchange* is one request and its answer over one link: two messages, one of which carries the data of a row. It is
worked on at both ends, which cost alike. Costs are relative because the only evidence is (source `vcider`):
`capplan.systems.vcider.network` estimates them, and a Cassandra system multiplies them by what an operation costs there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from capplan.models.errors import InputError, nearest
from capplan.models.language.units import Number

LINKS: Mapping[str, frozenset[str]] = {
    "client": frozenset({"client"}),
    "internode": frozenset({"internode"}),
    "client+internode": frozenset({"client", "internode"}),
}
"""Encrypted links, by the word for them."""
VPNS = ("user", "kernel")
CLIENT_SHARE, INTERNODE_SHARE = "encryption_client", "encryption_internode"
"""Names of the values that a layout with encryption has beside its system's parameters."""
MESSAGES = 2  # of an exchange: a request and its answer


@dataclass(frozen=True)
class End:
    """Work at one end of a link, as shares of one plain operation.

    Attributes
    ----------
    message : number
        For each message, sent or received.
    byte : number
        For each byte of data.
    """

    message: Number = 0.0
    byte: Number = 0.0

    def exchange(self, data_bytes: float) -> Number:
        """Return the work on one request and its answer, which carry so many bytes of data."""
        return MESSAGES * self.message + data_bytes * self.byte


@dataclass(frozen=True)
class Exchanges:
    """Work on one exchange at one end of each kind of link, as shares of one plain operation; None: not encrypted."""

    client: Number | None = None
    internode: Number | None = None

    def in_seconds(self, operation_s: Number) -> Exchanges:
        """Return it in seconds of a core, where a plain operation takes `operation_s`."""
        client, internode = (None if each is None else each * operation_s for each in (self.client, self.internode))
        return Exchanges(client, internode)


def encrypted(encryption: str | None, values: Mapping[str, Number]) -> Exchanges:
    """Return what the encrypted links of a layout cost.

    Parameters
    ----------
    encryption : str or None
        The encrypted links, as in a scenario.
    values : mapping
        Parameter values of the system; with `CLIENT_SHARE` and `INTERNODE_SHARE` where links are encrypted.
    """
    links = frozenset() if encryption is None else LINKS[encryption]
    return Exchanges(
        values[CLIENT_SHARE] if "client" in links else None, values[INTERNODE_SHARE] if "internode" in links else None
    )


def in_order(encryption: str) -> str:
    """Return the word for encrypted links with its parts in the usual order; any other word as it is."""
    usual = "+".join(sorted(encryption.split("+")))
    return usual if usual in LINKS else encryption


def check_encryption(encryption: str | None, vpn: str | None, nodes: int) -> str | None:
    """Check what a scenario says of encryption, and return the word for the encrypted links as it is in `LINKS`.

    Parameters
    ----------
    encryption, vpn : str or None
        The encrypted links, in any order, and where they are encrypted.
    nodes : int
        Cassandra nodes of the whole layout.

    Raises
    ------
    InputError
        When a word is unknown, says how nothing is encrypted, or names only links that are not there.
    """
    encryption = None if encryption is None else in_order(encryption)
    if encryption is not None and encryption not in LINKS:
        known = nearest(encryption, LINKS)
        raise InputError(f"encryption {encryption!r} names no links (leave it out where none is encrypted){known}")
    if vpn is not None and vpn not in VPNS:
        raise InputError(f"vpn {vpn!r} does not exist{nearest(vpn, VPNS)}")
    if vpn is not None and encryption is None:
        raise InputError(
            f"vpn {vpn!r} says where links are encrypted and none is: give encryption too, such as 'client+internode'"
        )
    if encryption == "internode" and nodes == 1:
        raise InputError(
            "encryption 'internode' encrypts links between Cassandra nodes and there is only one: add nodes, give "
            "'client', or leave it out"
        )
    return encryption
