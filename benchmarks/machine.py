"""What the measurements were made on and with. No name of a host, nothing of one checkout."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path


def description() -> dict[str, str | int | float]:
    """Return processor, cores, operating system, versions, and how many others are at work (before it starts)."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "load_average": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else 0.0,
        "system": platform.system(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "simpy")},
    }


def _processor() -> str:
    listed = Path("/proc/cpuinfo")
    if listed.is_file():
        for line in listed.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
