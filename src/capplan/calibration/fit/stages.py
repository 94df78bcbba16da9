"""Results of a long calculation, saved stage by stage, so that what was interrupted goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from capplan.calibration.system import System
from capplan.models.code_digest import code_digest
from capplan.models.replaced_file import replace_file

_FOLDERS = ("models", "simulator", "calibration", "systems")
_SUFFIXES = (".py", ".c", ".h")  # the kernel counts: fits compare load tests with simulations
_PACKAGE = Path(__file__).parents[2]

Told = Callable[[str], None]


@dataclass
class Stages:
    """The stages of one calculation.

    Attributes
    ----------
    key : str
        Digest of what the calculation depends on: stages of another are not used.
    told : function
        Told in words what is being done.
    output : Path or None
        File that the calculation is for: finished stages are kept beside it; None: nowhere.
    """

    key: str
    told: Told = lambda _: None
    output: Path | None = None
    known: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path | None:
        """Where finished stages are kept: calculations that differ neither read nor overwrite each other's."""
        return self.output and self.output.with_name(f"{self.output.name}.{self.key[:8]}.stages")

    def __post_init__(self) -> None:
        if self.path is None or not self.path.is_file():
            return
        try:
            kept = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return  # what cannot be read is computed again
        if isinstance(kept, dict) and kept.get("key") == self.key and isinstance(kept.get("stages"), dict):
            self.known = kept["stages"]

    def of(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return the result of a stage, as JSON has it; computed if it is not there yet."""
        self.told(name)
        if name not in self.known:
            self.known[name] = compute()
            if self.path is not None:
                replace_file(self.path, json.dumps({"key": self.key, "stages": self.known}))
        return self.known[name]

    def complete(self, count: int) -> bool:
        """Whether so many stages are finished."""
        return len(self.known) >= count

    def end(self) -> None:
        """Forget the stages: the calculation is done."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def refit_code(system: System[Any]) -> str:
    """Return a digest of all code that a fit of a system depends on, comments left out."""
    return _code(system, plain=True)


def digest(system: System[Any], *parts: object) -> str:
    """Return a digest of what a calculation for a system depends on, its code included."""
    code = _code(system, plain=False)
    text = json.dumps([version("capplan"), system.name, code, *parts], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _code(system: System[Any], *, plain: bool) -> str:
    """Return a digest of capplan's code, and of the system's where another package has it."""
    folder, own = Path(str(system.folder)), code_digest(_FOLDERS, _SUFFIXES, plain=plain)
    if folder.is_relative_to(_PACKAGE):
        return own
    return hashlib.sha256(f"{own} {code_digest(plain=plain, package=folder)}".encode()).hexdigest()
