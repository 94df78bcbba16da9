"""The layout of a scenario in a few words, for the first line of a view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capplan.models.language.per_dc import per_dc_text


def layout_in_words(scenario: Mapping[str, Any]) -> tuple[str, str]:
    """Name the layout, with the verb that follows it."""
    dcs, nodes = scenario.get("dcs"), scenario.get("cass_nodes", scenario.get("nodes"))
    if nodes is None:
        return _without_nodes(scenario)
    if isinstance(nodes, (tuple, list)):
        return f"{dcs} DCs of {per_dc_text(nodes)} nodes", "sustain"
    each = "node" if nodes == 1 else "nodes"
    if dcs is None:
        kind = "Cassandra " if "cass_nodes" in scenario else ""
        return f"{nodes} {kind}{each}", "sustains" if nodes == 1 else "sustain"
    return (f"1 DC of {nodes} {each}", "sustains") if dcs == 1 else (f"{dcs} DCs x {nodes} {each}", "sustain")


def _without_nodes(scenario: Mapping[str, Any]) -> tuple[str, str]:
    servers = scenario.get("servers")
    if servers is not None:
        return ("1 server", "sustains") if servers == 1 else (f"{servers} servers", "sustain")
    if "virtual_encrypts" in scenario:
        return f"The virtual network at RF {scenario['rf']} with {scenario['column_bytes']}-byte columns", "sustains"
    return "This layout", "sustains"
