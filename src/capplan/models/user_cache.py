"""The folder of what capplan keeps between runs; all of it can be deleted."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def user_cache() -> Path:
    """Return the folder: `CAPPLAN_CACHE_DIR`, or where the platform keeps such things."""
    given = os.environ.get("CAPPLAN_CACHE_DIR")
    if given:
        return Path(given)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "capplan"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "capplan"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "capplan"
