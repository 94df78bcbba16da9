"""Every system that can be calibrated, by name."""

from __future__ import annotations

from collections.abc import Mapping

from capplan.calibration import (
    arion_figures,
    fedora4_figures,
    openprovider_figures,
    rhino_shcm_figures,
    vcider_figures,
)
from capplan.calibration.study import Study
from capplan.models.errors import InputError, nearest

STUDIES: Mapping[str, Study] = {
    each.system.name: each
    for each in (
        openprovider_figures.STUDY,
        rhino_shcm_figures.STUDY,
        fedora4_figures.STUDY,
        vcider_figures.STUDY,
        arion_figures.STUDY,
    )
}


def study(system: str) -> Study:
    """Return how a system is calibrated.

    Raises
    ------
    InputError
        When there is no such system.
    """
    if system not in STUDIES:
        raise InputError(f"system {system!r} does not exist{nearest(system, STUDIES)}")
    return STUDIES[system]
