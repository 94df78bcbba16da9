"""Time on the wire between data centres."""

from __future__ import annotations

from capplan.models.language.units import Number

# Vacuum speed of light (exact, SI) over the group index of silica fibre at 1550 nm, 1.468 (ITU-T G.652 type fibre).
FIBRE_SPEED_M_PER_S = 299_792_458 / 1.468


def round_trip_s(distance_m: float, route_factor: Number) -> Number:
    """Round trip over fibre that is `route_factor` times as long as the straight line, in seconds.

    Parameters
    ----------
    distance_m : float
        Straight-line distance, metres.
    route_factor : number or array
        Length of the route over the straight line, at least 1.

    Returns
    -------
    number or array
        Propagation only: no queueing, no equipment.
    """
    return 2 * distance_m * route_factor / FIBRE_SPEED_M_PER_S
