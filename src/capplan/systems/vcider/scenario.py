"""The layout of `vcider`: replicas, column width, and the links that the native reference encrypts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic.dataclasses import dataclass

from capplan.errors import InputError, one_of
from capplan.models.cassandra.encryption import in_order
from capplan.models.language.construct import LANGUAGE
from capplan.models.language.scenario import Objectives, Option, Scenario, rate_option
from capplan.models.language.units import AtLeastOne, PositivePerSecond

NODES = 4  # evidence nodes: the cluster of the document
ENCRYPTION = ("client+internode", "internode", "none")
"""Links that the document's native references encrypt."""
VIRTUAL = ("same", "all", "none")
"""Links that the virtual network may have encrypted in comparison with them; the document does not state it."""
WIDEST = 1_000_000  # bytes of a column: more is a typing error


@dataclass(frozen=True, config=LANGUAGE)
class VciderScenario(Scenario):
    """A cluster of four Cassandra nodes on a virtual network, compared with one on native interfaces.

    Attributes
    ----------
    system
        Name of the system.
    rf
        Replicas of each row; 1 to 4.
    column_bytes
        Width of each column of a row, bytes.
    encryption
        Links that the native reference encrypts: `client+internode`, `internode` or `none`.
    virtual_encrypts
        Links that the virtual network encrypts in comparison with a reference that encrypts some: the `same`, `all` or
        `none`. It encrypts nothing in comparison with an unencrypted reference. This is an interpretation of the
        document, which calibration compares, and not part of the layout: the parameters are those of `same`.
    tps
        Not available, because no rate is documented.
    slo
        Not available, because objectives refer to rates and times.

    Raises
    ------
    InputError
        If there are more replicas than nodes, a value is unknown, or a rate or an objective is given.
    """

    system: Literal["vcider"] = "vcider"
    rf: Annotated[AtLeastOne, Option("Replicas of each row.", "replicas", measured=True)] = 3
    column_bytes: Annotated[AtLeastOne, Option("Width of a column in bytes.", "bytes a column", measured=True)] = 128
    encryption: Annotated[
        str,
        Option("What the native reference encrypts: internode, client+internode or none.", "encrypted links", "LINKS"),
    ] = "client+internode"
    virtual_encrypts: str = "same"
    tps: Annotated[PositivePerSecond | None, rate_option("Not available: the documents have ratios only.")] = None
    slo: Annotated[Objectives, Option("Not available: the documents have ratios only.", "objectives")] = ()

    def __post_init__(self) -> None:
        if self.rf > NODES:
            raise InputError(f"rf = {self.rf} needs at least {self.rf} nodes and vcider has {NODES}: lower rf")
        if self.column_bytes > WIDEST:
            raise InputError(f"column_bytes = {self.column_bytes} is more than the {WIDEST:,} that capplan sizes")
        object.__setattr__(self, "encryption", in_order(self.encryption))
        one_of(ENCRYPTION, self.encryption, f"encryption {self.encryption!r} is not a reference of vcider")
        one_of(VIRTUAL, self.virtual_encrypts, f"virtual_encrypts {self.virtual_encrypts!r} does not exist")
        for name, given in (("tps", self.tps), ("slo", self.slo)):
            if given is not None and given != ():
                raise InputError(
                    f"--{name} does not apply to vcider, which is documented only as ratios of throughput: leave it "
                    "out, or use openprovider or rhino-shcm with --encryption"
                )
