"""CPU costs of encrypted links at both ends.

An *exchange* is one request and its answer over one link: two messages, one of which carries the data of a row. Both
ends have the same cost. Where costs come from is up to a system: `capplan.systems.components.tls` for today's TLS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from capplan.errors import InputError, nearest, one_of
from capplan.models.language.units import Number

LINKS: Mapping[str, frozenset[str]] = {
    "client": frozenset({"client"}),
    "internode": frozenset({"internode"}),
    "client+internode": frozenset({"client", "internode"}),
}
"""Encrypted links by the keyword of a scenario."""
NO_LINKS = "none"
VPNS = ("user", "kernel")
CLIENT_S, INTERNODE_S = "encryption_client_s", "encryption_internode_s"
"""Names of the two values that encryption adds to a system's parameters."""
MESSAGES = 2  # per exchange: a request and its answer


@dataclass(frozen=True)
class End:
    """Encryption cost at one end of a link, in seconds or as shares of one plain operation.

    Attributes
    ----------
    message : number or array (draws,)
        Cost per message, sent or received.
    byte : number or array (draws,)
        Cost per byte of data.
    """

    message: Number = 0.0
    byte: Number = 0.0

    def exchange(self, data_bytes: Number) -> Number:
        """Return the cost of one exchange that carries `data_bytes` bytes of data."""
        return MESSAGES * self.message + data_bytes * self.byte


@dataclass(frozen=True)
class Exchanges:
    """Cost of one exchange at one end of each kind of link, in seconds of a core.

    Attributes
    ----------
    client, internode : number or array (draws,), optional
        Links of clients and between nodes; None if not encrypted.
    """

    client: Number | None = None
    internode: Number | None = None

    def times(self, factor: Number) -> Exchanges:
        """Multiply all costs."""
        client, internode = (None if each is None else each * factor for each in (self.client, self.internode))
        return Exchanges(client, internode)


def encrypted(encryption: str | None, values: Mapping[str, Number]) -> Exchanges:
    """Return the costs of the encrypted links of a layout.

    Parameters
    ----------
    encryption : str or None
        Keyword of the encrypted links: a key of `LINKS`.
    values : mapping
        Parameter values of the system, with `CLIENT_S` and `INTERNODE_S` if links are encrypted.

    Returns
    -------
    Exchanges
        Seconds of a core.
    """
    links = frozenset() if encryption is None else LINKS[encryption]
    return Exchanges(
        values[CLIENT_S] if "client" in links else None, values[INTERNODE_S] if "internode" in links else None
    )


def in_order(encryption: str) -> str:
    """Return a keyword for encrypted links with its parts in the usual order; any other string unchanged."""
    usual = "+".join(sorted(encryption.split("+")))
    return usual if usual in LINKS else encryption


def check_encryption(encryption: str | None, vpn: str | None, nodes: int) -> str | None:
    """Check the encryption fields of a scenario.

    Parameters
    ----------
    encryption : str or None
        Keyword of the encrypted links, with its parts in any order; `none` is the same as None.
    vpn : str or None
        Where the links are encrypted: one of `VPNS`.
    nodes : int
        Number of Cassandra nodes in the whole layout.

    Returns
    -------
    str or None
        The keyword as it is in `LINKS`.

    Raises
    ------
    InputError
        If a keyword is unknown, `vpn` is given without encryption, or a single node encrypts internode links.
    """
    encryption = None if encryption in (None, NO_LINKS) else in_order(encryption)
    if encryption is not None and encryption not in LINKS:
        raise InputError(f"encryption {encryption!r} names no links{nearest(encryption, (*LINKS, NO_LINKS))}")
    if vpn is not None:
        one_of(VPNS, vpn, f"vpn {vpn!r} does not exist")
    if vpn is not None and encryption is None:
        raise InputError(
            f"vpn {vpn!r} has no effect without encryption: give encryption too, such as 'client+internode'"
        )
    if encryption == "internode" and nodes == 1:
        raise InputError(
            "encryption 'internode' needs at least two Cassandra nodes, but there is one: add nodes, give 'client', or "
            "leave it out"
        )
    return encryption


def check_reconnects(reconnects: float | None, encryption: str | None, vpn: str | None) -> None:
    """Check the TLS connections that each statement opens.

    Raises
    ------
    InputError
        If client links make no handshakes.
    """
    if reconnects is None:
        return
    if encryption is None or "client" not in LINKS[encryption]:
        raise InputError(
            f"reconnects {reconnects:g} has no effect without encrypted client links: give encryption 'client' or "
            "'client+internode' too"
        )
    if vpn == "kernel":
        raise InputError(
            f"reconnects {reconnects:g} has no effect with vpn 'kernel', which keeps its keys when clients reconnect: "
            "leave one of them out"
        )
