"""`kiosk`: a ticket kiosk."""

from typing import Annotated, Literal

from pydantic.dataclasses import dataclass

from capplan.layout.system import System
from capplan.models.language.construct import LANGUAGE
from capplan.models.language.distribution import Deterministic, Exponential
from capplan.models.language.network import Network
from capplan.models.language.parameter import Parameter, Values
from capplan.models.language.scenario import Objectives, Option, Scenario, rate_option
from capplan.models.language.station import Station
from capplan.models.language.step import Delay, Sequence, Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.language.units import AtLeastOne, Number, PositivePerSecond


@dataclass(frozen=True, config=LANGUAGE)
class KioskScenario(Scenario):
    """A kiosk with some tills, and the customers that come per second."""

    system: Literal["kiosk"] = "kiosk"
    till_count: Annotated[AtLeastOne, Option("Tills of the kiosk.", "tills", measured=True)] = 2
    tps: Annotated[PositivePerSecond | None, rate_option("Offered customers per second.")] = None
    slo: Annotated[Objectives, Option("Objective, such as 'sale.p95<500ms'; may be repeated.", "objectives")] = ()


class Kiosk(System[KioskScenario]):
    """A ticket kiosk: one queue, some tills, and the payment provider's answer."""

    name = "kiosk"
    summary = "Ticket kiosk: customers wait in one queue for one of some tills, then for the payment provider."
    scenario = KioskScenario
    parameters = (
        Parameter("sale_s", 0.03, "s", "fitted", 0.7, "wide prior: a sale occupies a till for 10 to 100 ms"),
        Parameter("payment_s", 0.05, "s", "prior", 0.5, "the provider promises an answer within 20 to 120 ms"),
    )

    def network(self, scenario: KioskScenario, values: Values, rate_per_s: Number) -> Network:
        """Compose the kiosk at an offered rate, customers per second."""
        sale = Visit("till", Exponential(values["sale_s"]), name="sale")
        payment = Delay(Deterministic(values["payment_s"]), name="payment")
        return Network(
            name="kiosk",
            stations=(Station("till", servers=scenario.till_count),),
            classes=(RequestClass("sale", Sequence((sale, payment))),),
            traffic=Open(rate_per_s, {"sale": 1.0}),
        )


SYSTEM = Kiosk()
