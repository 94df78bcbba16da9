"""Factors of layouts: what the layouts of a table differ in beyond the model, and how alike two of them are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from capplan.models.language.units import FloatArray, Number

SHARED = 0.72
"""Correlation of the factors of two layouts of which one has twice the nodes, or the cores, of the other.

In the published table of a growing Cassandra cluster (Netflix 2011: 48, 96, 144 and 288 nodes, with load generators in
proportion), writes per node change by 5.2, -2.4 and 2.4 % from one number of nodes to the next. With 8 % of scatter
between layouts, 0.89 is the likeliest; with a uniform prior, the median is 0.72 (90 %: 0.13 to 0.93). The table has no
latencies, and no table varies the cores: the same is assumed of delays and of cores."""


def name_of(effect: str, layout: Any = None) -> str:
    """Return the name of a layout's factor among the parameters; without a layout, that of an unknown one."""
    if layout is None:
        return f"{effect}_of_layout"
    key = hashlib.sha256(repr(layout).encode()).hexdigest()[:8]
    return f"{effect}_of_layout[{key}]"


def factors(effects: Sequence[str], layout: Any, values: Mapping[str, Number]) -> dict[str, Number]:
    """Return a layout's factors by effect, as far as `values` contains them."""
    return {name: values[full] for name in effects if (full := name_of(name, layout)) in values}


def correlation(layouts: Sequence[Any], scaled: Sequence[Sequence[str]]) -> FloatArray:
    """Return the correlation of the logarithms of a factor (layouts, layouts).

    It falls with the doublings between two layouts, and is 0 if they differ in anything else.

    Parameters
    ----------
    layouts : sequence of Scenario
        The layouts.
    scaled : sequence of sequences of str
        Fields that may be doubled: numbers, or numbers in each data centre. Those of one sequence, such as the nodes of
        several tiers, count once: by the one that differs most.
    """
    names = {name for axis in scaled for name in axis}

    def between(one: Any, other: Any) -> float:
        if any(getattr(one, each.name) != getattr(other, each.name) for each in fields(one) if each.name not in names):
            return 0.0
        return float(SHARED ** sum(max(_doublings(one, other, name) for name in axis) for axis in scaled))

    return np.array([[between(one, other) for other in layouts] for one in layouts])


def _doublings(one: Any, other: Any, name: str) -> float:
    """Return the doublings of a field between two layouts, the mean over data centres; infinite if only one has any."""
    here, there = (np.asarray(getattr(each, name), dtype=float) for each in (one, other))
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.mean(np.where(here == there, 0.0, np.abs(np.log2(here) - np.log2(there)))))
