"""The files of a live validation: measurements so far, the calibration, and the predictions with their hash."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from capplan.errors import InputError
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.files import replace_file
from capplan.lab.layout import Layout

SMALL, LARGE, SESSIONS = "small.csv", "measured.csv", "sessions.csv"
PREDICTIONS, DIGEST, CALIBRATION = "predictions.json", "predictions.sha256", "calibration.json"
_KEY, _LAB, _INPUTS, _BEGUN = "protocol.json", "lab.json", "inputs.json", "begun.json"
_SHOWN = (PREDICTIONS, DIGEST, SMALL, LARGE, SESSIONS)
K = TypeVar("K")


@dataclass
class Folder:
    """The folder of one validation."""

    path: Path

    def begin(self, key: dict[str, Any]) -> str:
        """Prepare the folder for a protocol; return what happened to an earlier run, empty if there was none.

        What an earlier run of the same protocol measured is kept, unless that one has ended.
        """
        known, key = self._json(_KEY), json.loads(json.dumps(key))
        self.path.mkdir(parents=True, exist_ok=True)
        if known == key:
            return "continues with what an interrupted run has measured"
        words = ""
        if known is not None and known.get("ended") is not True:
            differing = [name for name, value in key.items() if known.get(name) != value]
            words = f"starts again: {', '.join(differing)} differ from those of an interrupted run"
        for name in (*_SHOWN, CALIBRATION, _KEY, _INPUTS, _BEGUN):
            (self.path / name).unlink(missing_ok=True)
        self._write(_KEY, key)
        return words

    def end(self) -> None:
        """Mark the protocol as finished, so that the next run starts from scratch; the files stay."""
        self._write(_KEY, {"ended": True})

    def rows(self, name: str) -> list[LoadTestRow]:
        """Return the rows of a table; none if the file does not exist yet."""
        path = self.path / name
        return list(LOAD_TESTS.rows(LOAD_TESTS.read(path))) if path.is_file() else []

    def write_rows(self, name: str, rows: Sequence[LoadTestRow]) -> None:
        """Write a table."""
        LOAD_TESTS.write(LOAD_TESTS.frame(rows), self.path / name)

    def inputs(self) -> dict[str, float]:
        """Return measured round trips in ms, keyed by the requested ones."""
        return self._json(_INPUTS) or {}

    def write_inputs(self, found: dict[str, float]) -> None:
        """Replace the measured round trips."""
        self._write(_INPUTS, found)

    def predictions(self) -> dict[str, Any] | None:
        """Return the predictions.

        Raises
        ------
        InputError
            If they were changed after they were written.
        """
        path, digest = self.path / PREDICTIONS, self.path / DIGEST
        if not path.is_file() or not digest.is_file():
            return None
        text = path.read_bytes()
        if [hashlib.sha256(text).hexdigest()] != digest.read_text(encoding="ascii").split()[:1]:
            raise InputError(f"{path} does not have the hash of {digest.name}: it was changed; delete {self.path}")
        found: dict[str, Any] = json.loads(text)
        return found

    def write_predictions(self, found: dict[str, Any]) -> None:
        """Write the predictions, then their hash in the form of `sha256sum`."""
        text = json.dumps(found, indent=1)
        replace_file(self.path / PREDICTIONS, text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        replace_file(self.path / DIGEST, f"{digest}  {PREDICTIONS}\n")

    def digest(self) -> str:
        """Return the hash of the predictions."""
        return (self.path / DIGEST).read_text(encoding="ascii").split()[0]

    def measured_from(self, now: str) -> str:
        """Return the recorded start of the first predicted run; record `now` if there is none."""
        began = str((self._json(_BEGUN) or {}).get("measured_from", now))
        self._write(_BEGUN, {"measured_from": began})
        return began

    def started_lab(self, layout: Layout) -> bool:
        """Whether an unfinished run of this validation started a lab with this layout."""
        return bool(self._json(_LAB) == asdict(layout))

    def note_lab(self, layout: Layout | None) -> None:
        """Record that a lab is started here, or that there is none any more."""
        if layout is None:
            (self.path / _LAB).unlink(missing_ok=True)
        else:
            self._write(_LAB, asdict(layout))

    def copy_to(self, folder: Path) -> None:
        """Copy the predictions, their hash and the runs to a folder."""
        for name in _SHOWN:
            if (self.path / name).is_file():
                shutil.copyfile(self.path / name, folder / name)

    def _json(self, name: str) -> dict[str, Any] | None:
        try:
            found = json.loads((self.path / name).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None  # unreadable data are measured again
        return found if isinstance(found, dict) else None

    def _write(self, name: str, found: dict[str, Any]) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        replace_file(self.path / name, json.dumps(found, indent=1))


@dataclass
class Runs(Generic[K]):
    """The table of one phase, written after every run.

    Attributes
    ----------
    folder : Folder
        Where it is.
    name : str
        Its file.
    key : function
        Returns what tells a row from the others.
    rows : dict of LoadTestRow
        The rows, by key.
    """

    folder: Folder
    name: str
    key: Callable[[LoadTestRow], K]
    rows: dict[K, LoadTestRow] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = {self.key(row): row for row in self.folder.rows(self.name)}

    def add(self, found: LoadTestRow | Sequence[LoadTestRow]) -> None:
        """Add the row or the rows of a run."""
        self.rows |= {self.key(row): row for row in ([found] if isinstance(found, LoadTestRow) else found)}
        self.folder.write_rows(self.name, list(self.rows.values()))


def runs_in(folder: Folder, name: str) -> Runs[str]:
    """Return a table with one row for each run, by the name of the run."""
    return Runs(folder, name, lambda row: str(row.run_id))


def sessions_in(folder: Folder) -> Runs[tuple[str, str]]:
    """Return the table of sessions: by run and request class."""
    return Runs(folder, SESSIONS, lambda row: (str(row.run_id), str(row.request_class)))
