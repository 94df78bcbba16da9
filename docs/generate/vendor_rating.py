"""Nodes by the rating of a vendor: what a service promises for each vCPU, not what was measured."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

RATINGS = Path(__file__).resolve().parents[2] / "tests" / "published" / "vendor_ratings.csv"
RATING = "vendor's rating per vCPU"


def rated_nodes(rate_per_s: float, cores: int) -> int:
    """Return the nodes that carry a rate by the rating of a Cassandra service.

    Parameters
    ----------
    rate_per_s : float
        The rate, in operations per second.
    cores : int
        vCPU of a node. The rating is that of the largest listed node that is not larger, or of the smallest listed one.
    """
    ratings = pd.read_csv(RATINGS, comment="#").sort_values("vcpu")
    listed = ratings[ratings.vcpu <= cores]
    per_core = (listed.iloc[-1] if len(listed) else ratings.iloc[0]).tps_per_vcpu
    return math.ceil(rate_per_s / (float(per_core) * cores))
