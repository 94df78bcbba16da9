"""capplan: a discrete-event simulator and capacity planner for Cassandra-backed services.

The front door: ask about a `scenario` with `predict`, or
with `what_if` if it must be quick; describe a system of your own as a `Network` and `simulate` it or
solve it with `Analysis`; look at the evidence with `audit`, `calibrate` and `validate`. Names are imported when they
are used, so that `import capplan` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from capplan.calibration.fit.calibrate import calibrate
    from capplan.calibration.validation.validate import validate
    from capplan.models.errors import InputError
    from capplan.models.language.document import read_network, write_network
    from capplan.models.language.network import Network
    from capplan.models.language.scenario import Scenario
    from capplan.models.solver.analytic import Analysis
    from capplan.planner.audit import audit
    from capplan.planner.explore.what_if import what_if
    from capplan.planner.predict.predict import predict
    from capplan.planner.predict.prediction import Prediction
    from capplan.simulator.engine import simulate
    from capplan.systems.registry import every_system, scenario

_HOMES = {
    "Analysis": "models.solver.analytic",
    "InputError": "models.errors",
    "Network": "models.language.network",
    "Prediction": "planner.predict.prediction",
    "Scenario": "models.language.scenario",
    "audit": "planner.audit",
    "calibrate": "calibration.fit.calibrate",
    "every_system": "systems.registry",
    "predict": "planner.predict.predict",
    "read_network": "models.language.document",
    "scenario": "systems.registry",
    "simulate": "simulator.engine",
    "validate": "calibration.validation.validate",
    "what_if": "planner.explore.what_if",
    "write_network": "models.language.document",
}

__all__ = [
    "Analysis",
    "InputError",
    "Network",
    "Prediction",
    "Scenario",
    "audit",
    "calibrate",
    "every_system",
    "predict",
    "read_network",
    "scenario",
    "simulate",
    "validate",
    "what_if",
    "write_network",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'capplan' has no attribute {name!r}")
    return getattr(import_module(f"capplan.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
