"""Journals of campaigns: a JSON object a line, appended as a piece of work ends, so that a campaign resumes."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def entries(path: Path) -> list[dict[str, Any]]:
    """Return the entries so far; a line that was cut off is left out."""
    found = []
    for line in path.read_text("utf-8").splitlines() if path.exists() else []:
        with suppress(ValueError):
            found.append(json.loads(line))
    return found


def append(path: Path, entry: Mapping[str, Any]) -> None:
    """Append an entry, on a line of its own even after one that was cut off."""
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" + json.dumps(entry) + "\n")
