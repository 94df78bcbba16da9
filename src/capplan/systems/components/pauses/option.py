"""Options of the pauses of nodes, shared by systems on Cassandra."""

from __future__ import annotations

from typing import Annotated

from capplan.models.language.scenario import Option

Heap = Annotated[
    str | None,
    Option("Heap of a Cassandra node, such as 8GiB; --gc is better.", "heap of a node", "SIZE"),
]
Collector = Annotated[
    str | None,
    Option("Garbage collector of the nodes, CMS or G1; CMS if only the heap is given.", "garbage collector", "NAME"),
]
ReportedGc = Annotated[
    str | None,
    Option(
        "GC pauses of your node under this load: a gc.log, an output of nodetool gcstats, or text such as 0.6%@45ms.",
        "GC pauses of a node",
        "FILE",
    ),
]
