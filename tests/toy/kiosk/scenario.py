"""The layout of a kiosk and the traffic on it."""

from typing import Annotated, Literal

from pydantic.dataclasses import dataclass

from capplan.models.language.construct import LANGUAGE
from capplan.models.language.scenario import Option, Scenario
from capplan.models.language.units import AtLeastOne, PositivePerSecond, parse_rate_per_s


@dataclass(frozen=True, config=LANGUAGE)
class KioskScenario(Scenario):
    """A kiosk with some tills.

    Attributes
    ----------
    system
        Name of the system.
    till_count
        Tills; customers wait in one queue for any of them.
    tps
        Offered rate, customers per second; 80 % of the capacity when left out.
    slo
        Objectives, such as `sale.p95<500ms`.
    """

    system: Literal["kiosk"] = "kiosk"
    till_count: Annotated[AtLeastOne, Option("Tills of the kiosk.", "tills", measured=True)] = 2
    tps: Annotated[
        PositivePerSecond | None,
        Option("Offered customers per second.", "offered rate, TPS", "RATE", read=parse_rate_per_s),
    ] = None
    slo: Annotated[tuple[str, ...], Option("Objective, such as 'sale.p95<500ms'; may be repeated.", "objectives")] = ()
