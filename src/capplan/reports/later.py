"""Modules that are imported when something of them is used: plotly and matplotlib are slow to import."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Later:
    """A module by its name, imported at its first use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)
