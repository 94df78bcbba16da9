"""The register of commands: `capplan --help` is printed from it, and a command's module is imported when it runs."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Verb(NamedTuple):
    """One command.

    Attributes
    ----------
    target : str
        `module:name`, below `capplan.cli`, of a function with typer's annotations or of a `typer.Typer` with commands.
    about : str
        The line in `capplan --help`.
    options : str
        Whether the command has its `own` options only, those of its target's `scenario` too, those and the ones of a
        `network`, or `ranges` of them.
    """

    target: str
    about: str
    options: Literal["own", "scenario", "network", "ranges"] = "own"


# A command stands here when it works, in the order of `capplan --help`.
TOPICS = {
    "What a layout does": {
        "predict": Verb(
            "layouts.predict:predict_", "Predict capacity and latency of a layout or a network.", "network"
        ),
        "simulate": Verb(
            "layouts.simulate:simulate_", "Simulate a layout or a network, request by request.", "scenario"
        ),
        "sweep": Verb("layouts.sweep:sweep_", "Predict many layouts at many rates, as a table and a plot.", "ranges"),
        "compare": Verb("layouts.compare:compare_", "Compare two layouts under common random numbers."),
        "outages": Verb(
            "layouts.outages:outages_",
            "Show what a loss leaves, the minutes around it, and recovery.",
            "network",
        ),
        "check": Verb("layouts.check:check_", "Check the objectives of a file in every situation."),
        "serve": Verb("layouts.serve:serve_", "Serve a JSON API and the what-if page on this machine."),
    },
    "What to buy": {
        "demand": Verb("sizing.demand:demand_", "Turn subscribers into rates over time and data on disk."),
        "size": Verb("sizing.size:size_", "Find the cheapest layout that meets its objectives.", "ranges"),
        "proposal": Verb(
            "sizing.proposal:proposal_",
            "Write a sizing as a proposal: a page, a PDF or a workbook.",
            "ranges",
        ),
        "verify": Verb("sizing.verify:verify_", "Compute a proposal again and name figures that differ."),
    },
    "Your own cluster": {
        "evidence": Verb("measurements.evidence:app", "Import and audit load tests; list and audit documents."),
        "calibrate": Verb(
            "measurements.calibrate:calibrate_", "Fit a system to its evidence and write the fitted file."
        ),
        "backtest": Verb(
            "measurements.backtest:backtest_", "Predict rows of a load-test table that a fit has not seen."
        ),
        "next-test": Verb(
            "measurements.next_test:next_test_",
            "Say which load test would tell most about a figure.",
            "scenario",
        ),
        "drift": Verb("measurements.drift:drift_", "Say which claims of a saved answer still hold."),
    },
    "Measure": {
        "lab": Verb("live.lab:app", "Run a real Cassandra cluster on this machine."),
        "collect": Verb("live.collect:collect_", "Measure one part of a real server."),
    },
    "Documented systems": {
        "systems": Verb("documented.systems:systems", "List the systems and their layout options."),
        "validate": Verb(
            "documented.validate:validate_", "Compare a calibrated system with evidence and simple rules."
        ),
    },
}
"""The commands under the headings of `capplan --help`."""

VERBS = {name: verb for verbs in TOPICS.values() for name, verb in verbs.items()}
