"""The folder for cached results. It may be deleted at any time."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryFile

from capplan.models.errors import Notice


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


def writable_cache() -> Path | None:
    """Return the user's cache, made if need be; None, with a notice, if it cannot be written.

    What cannot be kept is computed again next time. Nothing is kept elsewhere instead.
    """
    folder = user_cache()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except (OSError, ValueError) as error:
        warnings.warn(
            f"{folder} cannot be written ({getattr(error, 'strerror', None) or error}), so nothing is kept for a run "
            "that is interrupted: set CAPPLAN_CACHE_DIR to another folder",
            Notice,
            stacklevel=2,
        )
        return None
    return folder
