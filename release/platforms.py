"""Build the sdist and a wheel for each platform, each twice, and look into every library."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import lief

ROOT = Path(__file__).parents[1]
lief.logging.disable()  # it complains of empty symbol tables
EXPORTED = {f"capplan_{name}" for name in ("advance", "begin", "description", "fault", "quantile", "settle")}
SYSTEM_LIBRARIES = ("libc.", "libm.", "ld-", "/usr/lib/libSystem", "KERNEL32", "api-ms-win-crt", "msvcrt")
OLDEST_GLIBC = (2, 17)


@dataclass(frozen=True)
class Library:
    """What was read from a compiled kernel."""

    format: str
    processor: str
    exports: frozenset[str]
    needs: tuple[str, ...]
    glibc: tuple[int, ...]

    def faults(self, platform: str) -> list[str]:
        """Return what is wrong with the library for this platform."""
        wanted = "ELF" if "linux" in platform else "MACHO" if "macos" in platform else "PE"
        processors = ("X86_64", "AMD64") if platform.endswith(("x86_64", "amd64")) else ("ARM64",)
        others = [name for name in self.needs if not name.startswith(SYSTEM_LIBRARIES)]
        return [
            *([f"its format is {self.format}"] if self.format != wanted else []),
            *([f"its processor is {self.processor}"] if self.processor not in processors else []),
            *(f"{name} is not exported" for name in sorted(EXPORTED - self.exports)),
            *(f"it needs {name}" for name in others),
            *([f"it needs glibc {self.glibc}"] if self.glibc > (() if "musl" in platform else OLDEST_GLIBC) else []),
        ]


def source_copy(folder: Path) -> Path:
    """Copy the committed files to a folder; return it."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="tar")
    return folder


def built(platform: str | None, out: Path) -> Path:
    """Build a wheel for a platform, or the sdist for None, twice in folders of different names; return the file.

    Raises
    ------
    SystemExit
        When the two differ.
    """
    moment = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True)
    around = {**os.environ, "SOURCE_DATE_EPOCH": moment.stdout.strip()}
    if platform is not None:
        around["WHEEL_PLATFORM"] = platform
    files = []
    with TemporaryDirectory() as folder:
        for name in ("once", "once-more"):
            source, target = source_copy(Path(folder, name)), Path(folder, f"{name}-out")
            kind = "--sdist" if platform is None else "--wheel"
            command = ["uv", "build", "--quiet", kind, "--out-dir", str(target), str(source)]
            subprocess.run(command, env=around, check=True)
            files += [path for path in target.iterdir() if path.suffix in {".whl", ".gz"}]
        first, second = files
        if first.read_bytes() != second.read_bytes():
            raise SystemExit(f"{first.name}: two builds differ")
        out.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(first, out / first.name))


def library(wheel: Path) -> Library:
    """Return what the kernel of a wheel is."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if "/_kernel." in each)
        binary = lief.parse(archive.read(name))
    kind = binary.format.name
    if kind == "MACHO":
        processor = binary.header.cpu_type.name
        needs = tuple(each.name for each in binary.libraries if each.command.name != "ID_DYLIB")
    elif kind == "PE":
        processor = binary.header.machine.name
        needs = tuple(each.name for each in binary.imports)
    else:
        processor = "ARM64" if binary.header.machine_type.name == "AARCH64" else binary.header.machine_type.name
        needs = tuple(str(each) for each in binary.libraries)
    exports = {each.name.removeprefix("_") if kind == "MACHO" else each.name for each in binary.exported_functions}
    return Library(kind, processor, frozenset(exports), needs, _glibc(binary) if kind == "ELF" else ())


def _glibc(binary: lief.ELF.Binary) -> tuple[int, ...]:
    """Return the newest version of glibc that a library asks for."""
    names = (each.name for need in binary.symbols_version_requirement for each in need.get_auxiliary_symbols())
    versions = (tuple(map(int, name.removeprefix("GLIBC_").split("."))) for name in names if name.startswith("GLIBC_2"))
    return max(versions, default=())
