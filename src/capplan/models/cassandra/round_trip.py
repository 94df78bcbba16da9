"""Propagation time between data centres."""

from __future__ import annotations

from capplan.models.language.units import Number

# Speed of light in vacuum (exact, SI) over the group index of silica fibre at 1550 nm (ITU-T G.652).
FIBRE_SPEED_M_PER_S = 299_792_458 / 1.468


def round_trip_s(distance_m: float, route_factor: Number) -> Number:
    """Return the round trip time over fibre.

    Parameters
    ----------
    distance_m : float
        Straight-line distance in metres.
    route_factor : number or array (draws,)
        Length of the fibre over the straight-line distance, at least 1.

    Returns
    -------
    number or array (draws,)
        Propagation time in seconds, without queueing and equipment.
    """
    return 2 * distance_m * route_factor / FIBRE_SPEED_M_PER_S
