"""A live validation of the cluster of a file, with runs of half a second: a program that runs the command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

from capplan.cli.main import main
from capplan.lab.collectors.runs_in_turn import Bounds
from capplan.planner.live import protocol

SHORT = Bounds(0.5, 2, 1.0)
_usual = protocol.for_hosts


def for_hosts(levels: Sequence[str], rtt_ms: float | None, *, quick: bool, tls: bool) -> protocol.Protocol:
    """Return the usual protocol with short runs."""
    return replace(_usual(levels, rtt_ms, quick=quick, tls=tls), small_bounds=SHORT, large_bounds=SHORT)


if __name__ == "__main__":
    hosts, report = sys.argv[1:]
    with patch.object(protocol, "for_hosts", for_hosts):
        sys.exit(main(["validate", "--live", "--quick", "--hosts", hosts, "--report", report, "--json"]))
