"""`kiosk`: a ticket kiosk."""

from capplan.layout.system import System
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.units import Number

from .network import PARAMETERS, network
from .scenario import KioskScenario


class Kiosk(System[KioskScenario]):
    """A ticket kiosk."""

    name = "kiosk"
    summary = "Ticket kiosk: customers wait in one queue for one of some tills, then for the payment provider."
    scenario = KioskScenario
    parameters = PARAMETERS

    def network(self, scenario: KioskScenario, values: Values, rate_per_s: Number) -> Network:
        """Compose the system."""
        return network(scenario, values, rate_per_s)


SYSTEM = Kiosk()
