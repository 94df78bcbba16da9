"""Parameters of the garbage-collection pauses of Cassandra nodes, shared by every system on Cassandra."""

from __future__ import annotations

import tomllib
from importlib.resources import files

from capplan.models.language.parameter import Parameter

FILE = "prior.toml"
_FITTED = tomllib.loads((files(__package__) / FILE).read_text(encoding="utf-8"))


def _measured(name: str, unit: str, meaning: str) -> Parameter:
    prior = _FITTED[name]
    return Parameter(
        name,
        prior["median"],
        unit,
        "prior",
        prior["log_sd"],
        f"{meaning}: runs of {prior['sources']} clusters (docs/reference/gc-pauses.md)",
        prior["sources"] - 1,
    )


PAUSES: tuple[Parameter, ...] = (
    _measured("garbage_bytes", "B", "garbage that an operation leaves at each node that takes part in it"),
    Parameter(
        "young_bytes",
        2.5e9,
        "B",
        "guess",
        0.55,
        "young generation of a node, collected at once: 1 to 6 GB. Of a heap of 8 GiB, the default from "
        "32 GiB of memory, CMS takes 100 MB for each core up to a quarter, G1 some 55 % (two nodes measured)",
    ),
    _measured("pause_s", "s", "mean GC pause"),
    _measured("pause_scatter", "1", "standard deviation of GC pauses over their mean"),
    Parameter(
        "pause_error",
        1.0,
        "1",
        "guess",
        0.1,
        "share of the time in GC pauses over that which a node reported before: the same load leaves the same garbage",
    ),
)
