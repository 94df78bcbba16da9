"""What a user asks about the `vcider` system: replicas, the width of columns, what the native reference encrypts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic.dataclasses import dataclass

from capplan.models.cassandra.encryption import in_order
from capplan.models.errors import InputError, nearest
from capplan.models.language.construct import LANGUAGE
from capplan.models.language.scenario import Option, Scenario
from capplan.models.language.units import AtLeastOne, PositivePerSecond, parse_rate_per_s

NODES = 4  # evidence nodes: the cluster of the document
ENCRYPTION = ("client+internode", "internode", "none")
"""What the document's native references encrypt."""
VIRTUAL = ("same", "all", "none")
"""What the virtual network may have encrypted beside them: the document does not say."""
WIDEST = 1_000_000  # bytes of a column: beyond is a typing error


@dataclass(frozen=True, config=LANGUAGE)
class VciderScenario(Scenario):
    """A cluster of four Cassandra nodes on a virtual network, beside one on native interfaces.

    Attributes
    ----------
    system
        Name of the system.
    rf
        Replicas of each row; 1 to 4.
    column_bytes
        Width of each of a row's columns, bytes.
    encryption
        What the native reference encrypts: `client+internode`, `internode` or `none`.
    virtual_encrypts
        What the virtual network encrypts beside a reference that encrypts something: the `same` links, `all` of them,
        or `none`. Beside a plain reference it is plain. A reading of the document for calibration to compare, and no
        side of a layout: parameters are those of `same`.
    tps
        Must be left out: no rate is documented.
    slo
        Must be left out: objectives speak of rates and times.

    Raises
    ------
    InputError
        When there are more replicas than nodes, an unknown word, or a rate or an objective is given.
    """

    system: Literal["vcider"] = "vcider"
    rf: Annotated[AtLeastOne, Option("Replicas of each row.", "replicas", measured=True)] = 3
    column_bytes: Annotated[AtLeastOne, Option("Width of a column in bytes.", "bytes a column", measured=True)] = 128
    encryption: Annotated[
        str,
        Option("What the native reference encrypts: internode, client+internode or none.", "encrypted links", "LINKS"),
    ] = "client+internode"
    virtual_encrypts: str = "same"
    tps: Annotated[
        PositivePerSecond | None,
        Option("Not available: the documents have ratios only.", "offered rate, TPS", "RATE", read=parse_rate_per_s),
    ] = None
    slo: Annotated[tuple[str, ...], Option("Not available: the documents have ratios only.", "objectives")] = ()

    def __post_init__(self) -> None:
        if self.rf > NODES:
            raise InputError(f"rf = {self.rf} needs at least {self.rf} nodes and vcider has {NODES}: lower rf")
        if self.column_bytes > WIDEST:
            raise InputError(f"column_bytes = {self.column_bytes} is more than the {WIDEST:,} that capplan sizes")
        object.__setattr__(self, "encryption", in_order(self.encryption))
        if self.encryption not in ENCRYPTION:
            known = nearest(self.encryption, ENCRYPTION)
            raise InputError(f"encryption {self.encryption!r} is none of the references of vcider{known}")
        if self.virtual_encrypts not in VIRTUAL:
            raise InputError(
                f"virtual_encrypts {self.virtual_encrypts!r} does not exist{nearest(self.virtual_encrypts, VIRTUAL)}"
            )
        for name, given in (("tps", self.tps), ("slo", self.slo)):
            if given is not None and given != ():
                raise InputError(
                    f"--{name} says nothing of vcider, which is documented as ratios of throughput only: leave it out, "
                    "or ask openprovider or rhino-shcm with encryption"
                )
