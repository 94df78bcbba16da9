"""The build backend: setuptools, and the package `ziglang` where no other C compiler works.

The build of a wheel compiles the kernel of the compiled engine to a shared library that knows nothing of Python. Where
nothing can compile it, the wheel comes without: the other engines do not need it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from setuptools import Extension, build_meta
from setuptools.build_meta import *  # noqa: F403 - all hooks but those below are as they are
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

FLAGS = ("-std=gnu11", "-O3", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra")
SAME_NUMBERS = ("-ffp-contract=off", "-fno-fast-math", "-fno-math-errno", "-fwrapv")  # all engines round alike
ZIG = "ziglang>=0.15; platform_machine in 'x86_64 AMD64 aarch64 arm64'"  # where the kernel and ziglang both run
TARGETS = {  # what zig compiles for, by the platform of a wheel: `WHEEL_PLATFORM` chooses one
    "manylinux_2_17_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64": "aarch64-linux-gnu.2.17",
    "musllinux_1_2_x86_64": "x86_64-linux-musl",
    "musllinux_1_2_aarch64": "aarch64-linux-musl",
    "macosx_11_0_x86_64": "x86_64-macos.11.0",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
    "win_amd64": "x86_64-windows-gnu",
}
TRIAL = "#include <math.h>\nlong long f(double x) { return (long long)((__int128)llrint(x) >> 1); }\n"


def chosen_platform() -> str | None:
    """Return the platform that a wheel is built for; None for this machine's."""
    platform = os.environ.get("WHEEL_PLATFORM")
    if platform is not None and platform not in TARGETS:
        raise SystemExit(f"WHEEL_PLATFORM={platform}: there is no such platform; known: {', '.join(TARGETS)}")
    return platform


def _for_windows() -> bool:
    return (chosen_platform() or sys.platform).startswith("win")


@cache
def own_compiler() -> tuple[str, ...]:
    """Return the command of the machine's C compiler, or () when it has none that works; `CC` chooses one."""
    given = os.environ.get("CC")
    for command in [given] if given else ["cc", "gcc", "clang"]:
        words = tuple(shlex.split(command))
        if words and shutil.which(words[0]) and _works(words):
            return words
    return ()


def _works(command: tuple[str, ...]) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "trial.c")
        source.write_text(TRIAL, encoding="utf-8")
        try:
            _compile(command, source, Path(folder, "trial.so"), quiet=True)
        except (OSError, subprocess.CalledProcessError):
            return False
    return True


def _digest(folder: Path) -> str:
    """Return the digest of all C files, which `kernel/library.py` compares with that of the files beside it."""
    files = sorted(path for path in folder.iterdir() if path.suffix in {".c", ".h"})
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def _compile(command: tuple[str, ...], source: Path, library: Path, *, quiet: bool = False) -> None:
    position = [] if _for_windows() else ["-fPIC"]
    strip = ["-s"] if chosen_platform() or sys.platform == "linux" else []
    defined = f"-DSOURCE_DIGEST={_digest(source.parent)}"
    line = [*command, *FLAGS, *SAME_NUMBERS, *position, *strip, defined, str(source), "-o", str(library)]
    subprocess.run(line, check=True, capture_output=quiet)  # noqa: S603 - a compiler that the user chose


def compile_library(source: Path, library: Path) -> None:
    """Compile one C file, which includes all others: for this machine by its own compiler, otherwise by zig."""
    platform = chosen_platform()
    if platform is None and own_compiler():
        _compile(own_compiler(), source, library)
        return
    # Zig would make code for this very processor.
    zig = (
        sys.executable,
        "-m",
        "ziglang",
        "cc",
        *(["-target", TARGETS[platform]] if platform else []),
        "-mcpu=baseline",
    )
    with tempfile.TemporaryDirectory() as cache_folder:
        os.environ["ZIG_LOCAL_CACHE_DIR"] = cache_folder
        _compile(zig, source, library)


class CompileKernel(build_ext):
    """Compile the kernel to a library whose name says nothing of Python's version."""

    def get_ext_filename(self, fullname: str) -> str:
        """Return the path of the library below the folder of packages."""
        return str(Path(*fullname.split("."))) + (".dll" if _for_windows() else ".so")

    def build_extension(self, ext: Extension) -> None:
        """Compile it; setuptools goes on without it, with a warning, when that fails."""
        library = Path(self.get_ext_fullpath(ext.name))
        library.parent.mkdir(parents=True, exist_ok=True)
        library.unlink(missing_ok=True)
        try:
            compile_library(Path(ext.sources[0]), library)
        except (OSError, subprocess.CalledProcessError) as error:
            raise CompileError(str(error)) from error


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """Build the sdist; with SOURCE_DATE_EPOCH, the same files give the same bytes."""
    name = build_meta.build_sdist(sdist_directory, config_settings)
    moment = os.environ.get("SOURCE_DATE_EPOCH")
    if moment is not None:
        _date(Path(sdist_directory, name), int(moment))
    return name


def _date(sdist: Path, moment: int) -> None:
    """Write an archive again, sorted, as if all of it had been written by nobody at one moment."""
    with tarfile.open(sdist) as archive:
        found = [(each, archive.extractfile(each) if each.isfile() else None) for each in archive.getmembers()]
        contents = [(each, file.read() if file else b"") for each, file in sorted(found, key=lambda one: one[0].name)]
    with (
        sdist.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=moment) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for each, content in contents:
            each.mtime, each.uid, each.gid, each.uname, each.gname, each.pax_headers = moment, 0, 0, "", "", {}
            archive.addfile(each, io.BytesIO(content))


class AnyPython(bdist_wheel):
    """Make one wheel per platform, for every Python."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tag of the wheel."""
        return "py3", "none", chosen_platform() or super().get_tag()[2]


def _compiler_requirement() -> list[str]:
    return [] if own_compiler() and not chosen_platform() else [ZIG]


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """Return what building a wheel needs beside setuptools."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_compiler_requirement()]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    """Return what an editable installation needs beside setuptools."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *_compiler_requirement()]
