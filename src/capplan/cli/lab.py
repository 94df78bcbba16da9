"""`capplan lab`: a real Cassandra cluster on this machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from capplan.cli.shell.groups import Commands
from capplan.cli.shell.progress import working
from capplan.cli.shell.terminal import Json, Screen, exit_unless, naming, print_answer
from capplan.errors import InputError
from capplan.models.language.units import parse_duration_s, parse_size_bytes

if TYPE_CHECKING:
    from capplan.lab.cluster import LabStatus


_JAVA_SIZE = re.compile(r"(\d+)([MmGg])")
_LARGEST_HEAP = 2.0**40
_ABOUT = (
    "Run a real Cassandra cluster on this machine, from Python packages alone: no root, no containers, no Java.",
    "One lab runs at a time, on loopback addresses. Its packages are downloaded at first use and kept.",
)

lab_ = typer.Typer(cls=Commands, rich_markup_mode=None, add_completion=False, help="\n\n".join(_ABOUT))

NodeName = Annotated[str, typer.Argument(metavar="NODE", help="A node, such as dc1-2.")]


@lab_.command()
def up(
    dcs: Annotated[int, typer.Option(min=1, help="Data centres.")] = 1,
    cass_nodes: Annotated[int, typer.Option(min=1, help="Nodes of each data centre.")] = 1,
    rf: Annotated[
        int | None, typer.Option(min=1, help="Replicas of a row in each data centre.", show_default="3 at most")
    ] = None,
    rtt: Annotated[str, typer.Option(metavar="TIME", help="Round trip between data centres, such as 20ms.")] = "0ms",
    version: Annotated[str, typer.Option(help="Version of Cassandra: 5.0, 4.1 or 3.11.")] = "5.0",
    client_tls: Annotated[bool, typer.Option("--client-tls", help="Let clients use TLS.")] = False,
    internode_tls: Annotated[bool, typer.Option("--internode-tls", help="Encrypt between nodes.")] = False,
    heap: Annotated[str, typer.Option(metavar="SIZE", help="Heap of a node.")] = "512M",
    collector: Annotated[str, typer.Option(help="Garbage collector of Java: g1, serial or zgc.")] = "g1",
    as_json: Json = False,
) -> None:
    """Start a lab, and return when all its nodes have taken a write together."""
    from capplan.lab.layout import Layout, check_rtt
    from capplan.lab.packages import check_installed

    check_installed()
    rtt_s = check_rtt(parse_duration_s(rtt, "ms"))
    if rtt_s and dcs == 1:
        raise InputError(f"--rtt {rtt} is between data centres, and the lab has one: give --dcs 2 or more")
    layout = Layout(
        dcs, cass_nodes, min(3, cass_nodes) if rf is None else rf, version, read_heap(heap), client_tls, internode_tls,
        collector,
    )  # fmt: skip
    from capplan.lab import cluster

    with working() as progress:
        found = cluster.up(layout, rtt_s, progress)
    _show(found, as_json)


@lab_.command()
def status(as_json: Json = False) -> None:
    """Show the nodes of the lab.

    Exit code 1 if one is down.
    """
    from capplan.lab import cluster

    found = cluster.status()
    _show(found, as_json)
    exit_unless(found.complete and all(each.answers for each in found.nodes))


@lab_.command()
def rtt(time: Annotated[str, typer.Argument(metavar="TIME", help="The round trip, such as 40ms.")]) -> None:
    """Change the round trip between data centres at once."""
    from capplan.lab import cluster
    from capplan.lab.layout import check_rtt

    cluster.set_rtt(check_rtt(parse_duration_s(time, "ms")))
    Screen().print(f"the round trip between data centres is {time}")


@lab_.command()
def kill(node: NodeName) -> None:
    """Kill a node as a power failure would."""
    from capplan.lab import cluster

    cluster.kill(node)
    Screen().print(f"{node} is down; start it with 'capplan lab start {node}'")


@lab_.command()
def start(node: NodeName) -> None:
    """Start a node that was killed."""
    from capplan.lab import cluster

    with working() as progress:
        cluster.start(node, progress)
    Screen().print(f"{node} is up")


@lab_.command()
def down() -> None:
    """Stop the lab and delete its data.

    It finds what a crash has left, too. Downloaded packages stay.
    """
    from capplan.lab import cluster

    with working() as progress:
        progress("stopping", 0, 1)
        stopped = cluster.down()
    Screen().print(f"the lab is down: {stopped} process{'' if stopped == 1 else 'es'} stopped")


def _show(found: LabStatus, as_json: bool) -> None:
    from capplan.reports.live import status as described

    print_answer(found, lambda: described(found), as_json)


def read_heap(text: str) -> int:
    """Read a size as Java writes it, such as 512M, or as capplan does, such as 512MiB."""
    found = _JAVA_SIZE.fullmatch(text.strip())
    with naming("--heap"):
        size = parse_size_bytes(f"{found[1]}{found[2].upper()}iB" if found else text)
    if not 0 <= size < _LARGEST_HEAP:
        raise InputError(f"--heap {text} is not possible: give less than 1 TiB")
    return int(size)
