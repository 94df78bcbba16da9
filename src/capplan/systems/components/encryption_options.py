"""Scenario fields of encrypted links."""

from typing import Annotated

from pydantic import Field

from capplan.models.language.scenario import Option
from capplan.models.language.units import READ_SHARE, parse_share

Encryption = Annotated[
    str | None, Option("Links to encrypt: client, internode, client+internode or none.", "encrypted links", "LINKS")
]
Vpn = Annotated[str | None, Option("Where to encrypt them: user (TLS) or kernel (a VPN).", "encryption in", "WHERE")]
Reconnects = Annotated[
    float | None,
    Field(ge=0, le=1),
    READ_SHARE,
    Option("New TLS connections per statement, such as 0.01.", "TLS connections per statement", "X", read=parse_share),
]
