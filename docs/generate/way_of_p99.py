"""List what the p99 of `capplan predict --dcs 3 --cass-nodes 6` passes through: classes in order, and executed modules.

Run from anywhere: `uv run python docs/generate/way_of_p99.py`. It fails where the answer no longer takes this way: then
mend the drawing in docs/explanation/architecture.md.
"""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any

from capplan.cli.main import main

COMMAND = ("predict", "--dcs", "3", "--cass-nodes", "6")
WAY = (
    "systems.openprovider.scenario.OpenproviderScenario",
    "layout.case.Case",
    "models.language.network.Network",
    "models.solver.analytic.Analysis",
    "layout.solution.Solution",
    "layout.solution.Figures",
    "planner.predict.simulated_latency.ChosenDraws",
    "simulator.compiled.lowering.Lowered",
    "simulator.results.run.Run",
    "simulator.results.histogram.Histogram",
    "simulator.replications.DrawRun",
    "planner.predict.simulated_latency.Phase",
    "planner.predict.simulated_latency.DrawLatencies",
    "planner.predict.simulated_latency.Relation",
    "layout.uncertainty.Uncertainty",
    "answers.results.Band",
    "answers.results.Latency",
    "planner.predict.prediction.Prediction",
    "reports.document.Cell",
    "reports.document.Table",
)
"""Classes that hold the figure, or what it is computed from, in the order of its way: chosen by reading the code."""
_PACKAGE = "capplan."


def executed(arguments: tuple[str, ...]) -> tuple[set[str], set[str]]:
    """Return the modules whose functions a command calls, and the classes whose methods it calls or returns."""
    modules: set[str] = set()
    classes: set[str] = set()

    def seen(frame: FrameType, event: str, result: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith(_PACKAGE) or frame.f_code.co_name == "<module>":
            return
        if event == "call":
            modules.add(module.removeprefix(_PACKAGE))
            held = frame.f_locals.get("self")
        else:
            held = result
        kind = type(held)
        if kind.__module__.startswith(_PACKAGE):
            classes.add(f"{kind.__module__}.{kind.__qualname__}".removeprefix(_PACKAGE))

    threading.setprofile(seen)  # runs have threads of their own
    sys.setprofile(seen)
    try:
        main(arguments)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return modules, classes


if __name__ == "__main__":
    its_modules, its_classes = executed(COMMAND)
    print(f"\n{len(WAY)} classes on the way:", *WAY, sep="\n  ")
    print(f"\n{len(its_modules)} modules executed:", *sorted(its_modules), sep="\n  ")
    if left := [name for name in WAY if name not in its_classes]:
        sys.exit(f"not on the way any more: {', '.join(left)}")
