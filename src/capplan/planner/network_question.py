"""What `predict` takes beside a network in a file: an offered rate and objectives."""

from __future__ import annotations

from typing import Annotated

from pydantic.dataclasses import dataclass

from capplan.models.language.construct import LANGUAGE
from capplan.models.language.scenario import Objectives, Option, Scenario, rate_option
from capplan.models.language.units import PositivePerSecond


@dataclass(frozen=True, config=LANGUAGE)
class NetworkQuestion(Scenario):
    """A question about a network: rate and objectives; the network itself is in its file.

    Attributes
    ----------
    system
        Always `a network`.
    tps
        Offered mean rate, requests per second; that of the file if left out. Closed traffic has none.
    slo
        Objectives, such as `read.p99<20ms`.
    """

    system: str = "a network"
    tps: Annotated[PositivePerSecond | None, rate_option("Offered mean rate, instead of the file's.")] = None
    slo: Annotated[Objectives, Option("Objective, such as 'read.p99<20ms'; may be repeated.", "objectives")] = ()
