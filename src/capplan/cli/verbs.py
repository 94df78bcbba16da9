"""The register of commands: `capplan --help` is printed from it, and a command's module is imported when it runs.

The function `next_test_` of `capplan.cli.next_test` is the command `next-test`; `lab_` is a group of commands.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class Verb(NamedTuple):
    """One command.

    Attributes
    ----------
    about : str
        The line in `capplan --help`.
    options : str
        Whether the command has its `own` options only, those of its target's `scenario` too, those and the ones of a
        `network`, or `ranges` of them.
    """

    about: str
    options: Literal["own", "scenario", "network", "ranges"] = "own"


# A command stands here when it works, in the order of `capplan --help`.
TOPICS = {
    "What a layout does": {
        "predict": Verb("Predict capacity and latency of a layout or a network.", "network"),
        "simulate": Verb("Simulate a layout or a network, request by request.", "scenario"),
        "sweep": Verb("Predict many layouts at many rates, as a table and a plot.", "ranges"),
        "compare": Verb("Compare two layouts under common random numbers."),
        "outages": Verb("Show what a loss leaves, the minutes around it, and recovery.", "network"),
        "check": Verb("Check the objectives of a file in every situation."),
        "serve": Verb("Serve a JSON API and the what-if page on this machine."),
    },
    "What to buy": {
        "demand": Verb("Turn subscribers into rates over time and data on disk."),
        "size": Verb("Find the cheapest layout that meets its objectives.", "ranges"),
        "proposal": Verb("Write a sizing as a proposal: a page, a PDF or a workbook.", "ranges"),
        "verify": Verb("Compute a proposal again and name figures that differ."),
    },
    "Your own cluster": {
        "evidence": Verb("Import and audit load tests; list and audit documents."),
        "calibrate": Verb("Fit a system to its evidence and write the fitted file."),
        "backtest": Verb("Predict rows of a load-test table that a fit has not seen."),
        "next-test": Verb("Say which load test would tell most about a figure.", "scenario"),
        "drift": Verb("Say which claims of a saved answer still hold."),
    },
    "Measure": {
        "lab": Verb("Run a real Cassandra cluster on this machine."),
        "collect": Verb("Measure one part of a real server."),
    },
    "Documented systems": {
        "systems": Verb("List the systems and their layout options."),
        "validate": Verb("Compare a calibrated system with evidence and simple rules."),
    },
}
"""The commands under the headings of `capplan --help`."""

VERBS = {name: verb for verbs in TOPICS.values() for name, verb in verbs.items()}
