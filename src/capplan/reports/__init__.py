"""Answers for people: one description per answer, renderers for the screen, pages, PDF and workbooks; plots."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Later:
    """A module that is imported on first use, because plotly and matplotlib are slow to import."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)
