"""Results of a long calculation, saved stage by stage, so that an interrupted calculation can resume."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from capplan.code_digest import code_digest
from capplan.files import only_run, replace_file
from capplan.layout.system import System

_TOP = ("code_digest.py", "errors.py", "files.py", "grouped.py", "visible_text.py")
_FOLDERS = (*_TOP, "models", "simulator", "answers", "evidence", "layout", "calibration", "systems")
# Code that handles users' files, measures or audits does not affect documented fits; import-linter enforces this.
_APART = (
    "evidence/importers",
    "evidence/import_files.py",
    "evidence/audit",
    "calibration/tables",
)
_SHARED = "systems/components"  # parts that several systems share
_SUFFIXES = (".py", ".c", ".h")  # the kernel counts: fits compare load tests with simulations
_PACKAGE = Path(__file__).parents[2]

Progress = Callable[[str], None]
"""Receives the name of each stage as it starts."""


@dataclass
class Stages:
    """The stages of one calculation.

    Attributes
    ----------
    key : str
        Digest of what the calculation depends on; stages with another key are ignored.
    progress : function
        Called with the name of each stage as it starts.
    output : Path or None
        Result file; finished stages are saved beside it. None: they are not saved.
    known : dict
        Results of finished stages, by name.
    """

    key: str
    progress: Progress = lambda _: None
    output: Path | None = None
    known: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path | None:
        """File of the finished stages; different calculations use different files."""
        return self.output and self.output.with_name(f"{self.output.name}.{self.key[:8]}.stages")

    def __post_init__(self) -> None:
        if self.path is None or not self.path.is_file():
            return
        try:
            kept = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return  # an unreadable file is computed again
        if isinstance(kept, dict) and kept == _sealed(self.key, kept.get("stages")):
            self.known = kept["stages"]

    def of(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return the result of a stage as JSON types; compute it unless it is saved.

        Parameters
        ----------
        name : str
            Name of the stage, unique within the calculation.
        compute : function
            Computes the result, which must be JSON-serialisable.
        """
        self.progress(name)
        if name not in self.known:
            self.known[name] = compute()
            if self.path is not None:
                replace_file(self.path, json.dumps(_sealed(self.key, self.known)))
        return self.known[name]

    def owned(self) -> AbstractContextManager[None]:
        """Refuse a second calculation with the same output while the block runs.

        Raises
        ------
        InputError
            If there is one, or the lock cannot be written.
        """
        return nullcontext() if self.output is None else only_run(self.output)

    def complete(self, count: int) -> bool:
        """Whether at least `count` stages are finished."""
        return len(self.known) >= count

    def end(self) -> None:
        """Delete the saved stages at the end of the calculation."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _sealed(key: str, stages: Any) -> dict[str, Any]:
    """Return what a file of stages holds, with a digest that shows damage."""
    text = json.dumps(stages, sort_keys=True)
    return {"key": key, "digest": hashlib.sha256(text.encode()).hexdigest(), "stages": stages}


def refit_code(system: System[Any]) -> str:
    """Return a digest of all code that a fit of a system depends on, without comments and docstrings.

    That is all code up to the systems, without other systems, importers, audits, and what fits load-test tables.
    """
    return _code(system, plain=True)


def digest(system: System[Any], *parts: object) -> str:
    """Return a digest of a system's code and of everything else (`parts`) that a calculation depends on."""
    code = _code(system, plain=False)
    text = json.dumps([version("capplan"), system.name, code, *parts], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _code(system: System[Any], *, plain: bool) -> str:
    """Return a digest of capplan's code without other systems, and of the system's if it is in another package."""
    folder = Path(str(system.folder))
    others = (f"systems/{each.name}" for each in (_PACKAGE / "systems").iterdir() if each.is_dir() and each != folder)
    apart = (*_APART, f"systems/{folder.name}/audit.py", *sorted(set(others) - {_SHARED}))
    own = code_digest(_FOLDERS, _SUFFIXES, plain=plain, without=apart)
    if folder.is_relative_to(_PACKAGE):
        return own
    return hashlib.sha256(f"{own} {code_digest(plain=plain, package=folder)}".encode()).hexdigest()
