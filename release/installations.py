"""Install a wheel or an sdist as users do, on each Python found here, and ask for the default answer.

`uv run python release/installations.py` builds this machine's wheel and asks it on every Python: the short form.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PYTHONS = ("3.11", "3.12", "3.13")
QUESTION = ("predict", "--dcs", "3", "--cass-nodes", "6", "--engine", "analytic", "--json")
SIMULATION = ("simulate", "--engine", "compiled", "--duration", "100ms", "--replications", "2", "--json")
SAME = 1e-3  # newer dependencies may round differently


class FailedError(Exception):
    """A command that should succeed did not."""


def interpreters() -> dict[str, Path | None]:
    """Return the interpreter of each version, or None where this machine has none."""
    return {version: _found(version) for version in PYTHONS}


def _found(version: str) -> Path | None:
    command = ["uv", "python", "find", "--no-project", "--no-python-downloads", "--system", version]
    found = subprocess.run(command, cwd=Path.home(), capture_output=True, text=True, check=False)
    if found.returncode == 0:
        return Path(found.stdout.strip())
    of_pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    return of_pyenv[-1] if of_pyenv else None


def run(*command: str | Path, path: str | None = None) -> str:
    """Run a command far from the clone; return what it prints."""
    with TemporaryDirectory() as folder:
        around = {**os.environ, "CAPPLAN_CACHE_DIR": folder} | ({"PATH": path} if path else {})
        for name in ("VIRTUAL_ENV", "PYTHONPATH", "UV_PROJECT_ENVIRONMENT"):
            around.pop(name, None)
        words = [str(word) for word in command]
        ended = subprocess.run(words, cwd=folder, env=around, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise FailedError(f"{' '.join(words)}: {ended.stderr[-2000:]}")
    return ended.stdout


def environment(folder: Path, python: Path) -> Path:
    """Make a virtual environment; return its interpreter."""
    run("uv", "venv", "--quiet", "--no-project", "--python", python, folder)
    return folder / "bin" / "python"


def install(python: Path, what: str | Path) -> None:
    """Install into an environment by uv, with the versions that the project's date allows."""
    allowed = SETTINGS["tool"]["uv"]
    newer = [f"{name}={date}" for name, date in allowed.get("exclude-newer-package", {}).items()]
    passed = [word for each in newer for word in ("--exclude-newer-package", each)]
    dates = ("--exclude-newer", allowed["exclude-newer"], *passed)
    run("uv", "pip", "install", "--quiet", *dates, "--python", python, what)


def answer(*command: str | Path) -> float:
    """Ask an installation for the capacity, and whether its compiled engine runs; return the capacity."""
    run(*command, *SIMULATION)
    return float(json.loads(run(*command, *QUESTION))["capacity"]["peak_tps"]["value"])


def short(wheel: Path) -> Iterator[tuple[str, float | str]]:
    """Yield how the wheel answers on each Python."""
    for version, python in interpreters().items():
        if python is None:
            yield f"wheel, Python {version}", "not found here"
            continue
        with TemporaryDirectory() as folder:
            inside = environment(Path(folder, "venv"), python)
            install(inside, wheel)
            yield f"wheel, Python {version}", answer(inside.parent / "capplan")


def long(wheel: Path, sdist: Path) -> Iterator[tuple[str, float | str]]:
    """Yield how wheel and sdist answer in all other ways of installing them."""
    pythons = interpreters()
    for version, python in pythons.items():
        if python is not None:
            tool = ("uv", "tool", "run", "--quiet", "--isolated", "--python", python, "--from", wheel, "capplan")
            yield f"uv tool run, Python {version}", answer(*tool)
            pipx = ("uv", "tool", "run", "--quiet", "pipx", "run", "--python", python, "--spec", wheel, "capplan")
            yield f"pipx, Python {version}", answer(*pipx)
            yield f"pip, Python {version}", _by_pip(python, wheel)
    python = pythons[PYTHONS[0]] or Path(sys.executable)
    yield "sdist by pip, with a C compiler", _by_pip(python, sdist)
    with TemporaryDirectory() as folder:
        for name in ("sh", "env", "uname"):
            Path(folder, name).symlink_to(str(shutil.which(name)))
        yield "sdist by pip, without one (zig)", _by_pip(python, sdist, path=folder)
    with TemporaryDirectory() as folder:
        inside = environment(Path(folder, "venv"), python)
        install(inside, f"{wheel}[{','.join(SETTINGS['project']['optional-dependencies'])}]")
        yield "wheel with all extras", answer(inside.parent / "capplan")


def _by_pip(python: Path, what: Path, path: str | None = None) -> float:
    """Install by plain pip into an environment of venv, and ask."""
    with TemporaryDirectory() as folder:
        run(python, "-m", "venv", folder)
        run(Path(folder, "bin", "python"), "-m", "pip", "install", "--quiet", what, path=path)
        return answer(Path(folder, "bin", "capplan"))


def report(answers: Iterator[tuple[str, float | str]]) -> list[str]:
    """Print how each installation answers; return those that answer otherwise than the first."""
    faults: list[str] = []
    expected: float | None = None
    for name, found in answers:
        print(f"{name:36} {found if isinstance(found, str) else f'{found:,.0f} TPS'}", flush=True)
        if isinstance(found, float):
            expected = expected or found
            if abs(found / expected - 1) > SAME:
                faults.append(f"{name}: {found}, not {expected}")
    return faults


def main() -> int:
    """Build this machine's wheel and ask it on every Python; 1 if one answers otherwise."""
    with TemporaryDirectory() as folder:
        subprocess.run(["uv", "build", "--quiet", "--wheel", "--out-dir", folder, str(ROOT)], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        faults = report(short(wheel))
    print("\n".join(faults))
    return bool(faults)


if __name__ == "__main__":
    raise SystemExit(main())
