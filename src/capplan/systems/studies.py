"""Every system that can be calibrated, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from capplan.calibration.study import Study
from capplan.models.errors import InputError, nearest

NAMES = ("openprovider", "rhino-shcm", "fedora4", "vcider", "arion")


class Lazy(Mapping[str, Any]):
    """Attributes of a module of each system, imported when they are used."""

    def __init__(self, module: str, attribute: str) -> None:
        self.module, self.attribute = module, attribute

    def __getitem__(self, name: str) -> Any:
        if name not in NAMES:
            raise KeyError(name)
        return getattr(import_module(f"capplan.systems.{name.replace('-', '_')}.{self.module}"), self.attribute)

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


STUDIES: Mapping[str, Study] = Lazy("observations", "STUDY")


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
