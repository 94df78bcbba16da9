"""capplan: a discrete-event simulator and capacity planner for Cassandra-backed services.

The front door: ask about a `scenario` with `predict`, or with `what_if` if it must be quick. Turn a `Demand` into a
`forecast`, `size` a layout for it with a `SizingQuestion` and `Prices`, and `propose` it to a customer (`Details`,
`ProposalQuestion`, `render_proposal`). Take your own load tests with `import_load_tests`, `audit`, `calibrate` and
`backtest`. Describe a system of your own as a `Network` and `simulate` it or solve it with `Analysis`. Look at the
documented systems with `audit`, `calibrate` and `validate`. Show an answer by its `figure`, and a sizing by its
`sentences` and its table of `layouts`. Names are imported when they are used, so that `import capplan` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from capplan.calibration.fit.calibrate import calibrate as calibrate
    from capplan.calibration.tables.backtest import backtest as backtest
    from capplan.calibration.validation.validation import validate as validate
    from capplan.errors import InputError as InputError
    from capplan.evidence.import_files import import_load_tests as import_load_tests
    from capplan.models.language.document import read_network as read_network
    from capplan.models.language.document import write_network as write_network
    from capplan.models.language.network import Network as Network
    from capplan.models.language.scenario import Scenario as Scenario
    from capplan.models.solver.analytic import Analysis as Analysis
    from capplan.planner.audit import audit as audit
    from capplan.planner.demand.demand import Demand as Demand
    from capplan.planner.demand.demand import read_demand as read_demand
    from capplan.planner.demand.forecast import forecast as forecast
    from capplan.planner.predict.predict import predict as predict
    from capplan.planner.predict.prediction import Prediction as Prediction
    from capplan.planner.proposal.details import Details as Details
    from capplan.planner.proposal.propose import ProposalQuestion as ProposalQuestion
    from capplan.planner.proposal.propose import propose as propose
    from capplan.planner.size.machines import Prices as Prices
    from capplan.planner.size.size import SizingQuestion as SizingQuestion
    from capplan.planner.size.size import size as size
    from capplan.planner.what_if import what_if as what_if
    from capplan.reports.load_curve import figure as figure
    from capplan.reports.load_curve import sentences as sentences
    from capplan.reports.proposal import render_proposal as render_proposal
    from capplan.reports.sizing import layouts as layouts
    from capplan.simulator.engine import simulate as simulate
    from capplan.systems.registry import every_system as every_system
    from capplan.systems.registry import scenario as scenario

_HOMES = {
    "Analysis": "models.solver.analytic",
    "Demand": "planner.demand.demand",
    "Details": "planner.proposal.details",
    "InputError": "errors",
    "Network": "models.language.network",
    "Prediction": "planner.predict.prediction",
    "Prices": "planner.size.machines",
    "ProposalQuestion": "planner.proposal.propose",
    "Scenario": "models.language.scenario",
    "audit": "planner.audit",
    "backtest": "calibration.tables.backtest",
    "calibrate": "calibration.fit.calibrate",
    "every_system": "systems.registry",
    "figure": "reports.load_curve",
    "forecast": "planner.demand.forecast",
    "import_load_tests": "evidence.import_files",
    "layouts": "reports.sizing",
    "sentences": "reports.load_curve",
    "SizingQuestion": "planner.size.size",
    "predict": "planner.predict.predict",
    "propose": "planner.proposal.propose",
    "read_demand": "planner.demand.demand",
    "read_network": "models.language.document",
    "render_proposal": "reports.proposal",
    "scenario": "systems.registry",
    "simulate": "simulator.engine",
    "size": "planner.size.size",
    "validate": "calibration.validation.validation",
    "what_if": "planner.what_if",
    "write_network": "models.language.document",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'capplan' has no attribute {name!r}")
    return getattr(import_module(f"capplan.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
