"""capplan: a discrete-event simulator and capacity planner for Cassandra-backed services.

The front door: ask about a `scenario` with `predict`; describe a system of your own as a `Network` and `simulate` it or
solve it with `Analysis`; look at the evidence with `audit`, `calibrate` and `validate`. Names are imported when they
are used, so that `import capplan` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from capplan.calibration.audit import audit
    from capplan.calibration.calibrate import calibrate
    from capplan.models.analytic import Analysis
    from capplan.models.document import read_network, write_network
    from capplan.models.errors import InputError
    from capplan.models.network import Network
    from capplan.models.scenario import Scenario
    from capplan.models.systems import scenario
    from capplan.planner.predict import predict
    from capplan.planner.prediction import Prediction
    from capplan.planner.validate import validate
    from capplan.simulator.engine import simulate

_HOMES = {
    "Analysis": "models.analytic",
    "InputError": "models.errors",
    "Network": "models.network",
    "Prediction": "planner.prediction",
    "Scenario": "models.scenario",
    "audit": "calibration.audit",
    "calibrate": "calibration.calibrate",
    "predict": "planner.predict",
    "read_network": "models.document",
    "scenario": "models.systems",
    "simulate": "simulator.engine",
    "validate": "planner.validate",
    "write_network": "models.document",
}

__all__ = [
    "Analysis",
    "InputError",
    "Network",
    "Prediction",
    "Scenario",
    "audit",
    "calibrate",
    "predict",
    "read_network",
    "scenario",
    "simulate",
    "validate",
    "write_network",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'capplan' has no attribute {name!r}")
    return getattr(import_module(f"capplan.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
