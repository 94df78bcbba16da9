"""A kiosk as a queueing network: one queue, some tills, and the payment provider's answer."""

from capplan.models.language.distribution import Deterministic, Exponential
from capplan.models.language.network import Network
from capplan.models.language.parameter import Parameter, Values
from capplan.models.language.station import Station
from capplan.models.language.step import Delay, Sequence, Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.language.units import Number

from .scenario import KioskScenario

PARAMETERS = (
    Parameter("sale_s", 0.03, "s", "fitted", 0.7, "wide prior: a sale occupies a till for 10 to 100 ms"),
    Parameter("payment_s", 0.05, "s", "prior", 0.5, "the provider promises an answer within 20 to 120 ms"),
)


def network(scenario: KioskScenario, values: Values, rate_per_s: Number) -> Network:
    """Compose the kiosk at an offered rate, customers per second."""
    sale = Visit("till", Exponential(values["sale_s"]), name="sale")
    payment = Delay(Deterministic(values["payment_s"]), name="payment")
    return Network(
        name="kiosk",
        stations=(Station("till", servers=scenario.till_count),),
        classes=(RequestClass("sale", Sequence((sale, payment))),),
        traffic=Open(rate_per_s, {"sale": 1.0}),
    )
