"""The build backend: setuptools, and the package `ziglang` where no other C compiler works.

The build of a wheel compiles the kernel of the compiled engine to a shared library that knows nothing of Python. Where
nothing can compile it, the wheel comes without: the other engines do not need it.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
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
TRIAL = "#include <math.h>\nlong long f(double x) { return (long long)((__int128)llrint(x) >> 1); }\n"


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
    position = [] if sys.platform == "win32" else ["-fPIC"]
    strip = ["-s"] if sys.platform == "linux" else []
    defined = f"-DSOURCE_DIGEST={_digest(source.parent)}"
    line = [*command, *FLAGS, *SAME_NUMBERS, *position, *strip, defined, str(source), "-o", str(library)]
    subprocess.run(line, check=True, capture_output=quiet)  # noqa: S603 - a compiler that the user chose


def compile_library(source: Path, library: Path) -> None:
    """Compile one C file, which includes all others, by the machine's compiler or else by zig."""
    if own_compiler():
        _compile(own_compiler(), source, library)
        return
    # Zig would make code for this very processor; `KERNEL_TARGET` is for wheels for others: x86_64-linux-gnu.2.17.
    target = os.environ.get("KERNEL_TARGET")
    zig = (sys.executable, "-m", "ziglang", "cc", "-mcpu=baseline", *(["-target", target] if target else []))
    with tempfile.TemporaryDirectory() as cache_folder:
        os.environ["ZIG_LOCAL_CACHE_DIR"] = cache_folder
        _compile(zig, source, library)


class CompileKernel(build_ext):
    """Compile the kernel to a library whose name says nothing of Python's version."""

    def get_ext_filename(self, fullname: str) -> str:
        """Return the path of the library below the folder of packages."""
        return str(Path(*fullname.split("."))) + (".dll" if sys.platform == "win32" else ".so")

    def build_extension(self, ext: Extension) -> None:
        """Compile it; setuptools goes on without it, with a warning, when that fails."""
        library = Path(self.get_ext_fullpath(ext.name))
        library.parent.mkdir(parents=True, exist_ok=True)
        library.unlink(missing_ok=True)
        try:
            compile_library(Path(ext.sources[0]), library)
        except (OSError, subprocess.CalledProcessError) as error:
            raise CompileError(str(error)) from error


class AnyPython(bdist_wheel):
    """Make one wheel per platform, for every Python."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tag of the wheel."""
        return "py3", "none", super().get_tag()[2]


def _compiler_requirement() -> list[str]:
    return [] if own_compiler() else [ZIG]


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """Return what building a wheel needs beside setuptools."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_compiler_requirement()]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    """Return what an editable installation needs beside setuptools."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *_compiler_requirement()]
