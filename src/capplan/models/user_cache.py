"""The folder for cached results. It may be deleted at any time."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def user_cache() -> Path:
    """Return `CAPPLAN_CACHE_DIR` if it is set, otherwise capplan's folder in the platform's cache folder."""
    given = os.environ.get("CAPPLAN_CACHE_DIR")
    if given:
        return Path(given)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "capplan"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "capplan"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "capplan"
