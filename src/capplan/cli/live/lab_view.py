"""The lab for people: what it is, and each of its nodes."""

from __future__ import annotations

from rich.console import Console

from capplan.cli.views.tables import heading, table
from capplan.lab.cluster import LabStatus, NodeStatus


def status(found: LabStatus, console: Console) -> None:
    """Print a lab and its nodes."""
    dcs = f"{found.dcs} data centre{'s' if found.dcs > 1 else ''} of {found.cass_nodes}"
    parts = [f"Cassandra {found.release}", dcs, f"RF {found.rf}", f"heap {found.heap_bytes / 2**20:.0f} MiB"]
    if found.dcs > 1:
        parts.append(f"round trip {found.rtt_s * 1000:g} ms")
    used = {"clients": found.client_tls, "between nodes": found.internode_tls}
    if tls := [name for name, wanted in used.items() if wanted]:
        parts.append(f"TLS {' and '.join(tls)}")
    console.print(heading(", ".join(parts)))
    shown = table(
        ("node", "left"), ("address", "left"), ("state", "left"), ("pid", "right"), ("memory", "right"),
        ("CPU time", "right"),
    )  # fmt: skip
    for each in found.nodes:
        shown.add_row(each.name, f"{each.address}:9042", _state(each), *_use(each))
    console.print(shown)
    down = [each.name for each in found.nodes if not each.up]
    if down:
        console.print(f"Start a node that is down with 'capplan lab start {down[0]}'.")
    elif not found.complete:
        console.print("The lab is incomplete: end it with 'capplan lab down'.")


def _state(node: NodeStatus) -> str:
    if not node.up:
        return "down"
    return "up" if node.answers else "starting"


def _use(node: NodeStatus) -> tuple[str, str, str]:
    if not node.up:
        return "", "", ""
    return str(node.pid), f"{node.memory_bytes / 2**20:,.0f} MiB", f"{node.cpu_s:,.1f} s"
