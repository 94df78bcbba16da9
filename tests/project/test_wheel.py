"""What a user installs: the wheel holds the package, its data and its license, nothing else, and it works."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from capplan.simulator.compiled.kernel.library import LIBRARY as LIBRARY_PATH

pytestmark = pytest.mark.slow  # builds the kernel twice; `just check` runs it, too
ROOT = Path(__file__).parents[2]
NOT_SHIPPED = {"__pycache__"}
LIBRARY = PurePosixPath("capplan/simulator/compiled/kernel", LIBRARY_PATH.name)


def uv(*arguments: str | Path) -> None:
    """Run uv, or skip where there is none: pytest may be started without it."""
    executable = os.environ.get("UV") or shutil.which("uv")
    if executable is None:
        pytest.skip("uv is not installed: `pip install uv`")
    command = [executable, *map(str, arguments)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sdist, and the wheel from it, from a copy: two workers that build in one folder disturb each other."""
    source, folder = tmp_path_factory.mktemp("source") / "capplan", tmp_path_factory.mktemp("dist")
    left_out = shutil.ignore_patterns(".*", "dist", "__pycache__", "*.egg-info", LIBRARY.name)
    shutil.copytree(ROOT, source, symlinks=True, ignore=left_out)
    uv("build", "--quiet", "--out-dir", folder, source)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("capplan-*.whl")
    return path


def names(wheel: Path) -> set[PurePosixPath]:
    with zipfile.ZipFile(wheel) as archive:
        return {PurePosixPath(name) for name in archive.namelist() if not name.endswith("/")}


def package_files() -> set[PurePosixPath]:
    """List every file of src/capplan, data and C files included, but not the kernel compiled there."""
    source = ROOT / "src"
    files = (path for path in (source / "capplan").rglob("*") if path.is_file())
    found = {PurePosixPath(path.relative_to(source)) for path in files if not NOT_SHIPPED & set(path.parts)}
    return found - {LIBRARY}


def test_wheel_holds_the_whole_package_the_what_if_page_and_nothing_else(wheel: Path) -> None:
    found = {name for name in names(wheel) if not name.parts[0].endswith(".dist-info")}
    package = {name for name in found if not name.parts[0].endswith(".data")}

    assert package == package_files() | {LIBRARY}
    assert {PurePosixPath(*name.parts[1:]) for name in found - package} == {
        PurePosixPath("data/share/capplan/notebooks/what_if_layout.py")
    }
    assert PurePosixPath("capplan/py.typed") in package


def test_one_wheel_serves_every_python_of_a_platform(wheel: Path) -> None:
    python, abi, platform = wheel.stem.split("-")[-3:]

    assert (python, abi) == ("py3", "none")
    assert platform != "any"


def test_wheel_names_license_and_entry_point(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        by_name = {PurePosixPath(name).name: name for name in archive.namelist() if ".dist-info/" in name}
        license_text = archive.read(by_name["LICENSE"]).decode()
        entry_points = archive.read(by_name["entry_points.txt"]).decode()
        metadata = archive.read(by_name["METADATA"]).decode()

    assert license_text == (ROOT / "LICENSE").read_text("utf-8")
    assert "Apache License" in license_text
    assert "capplan = capplan.cli.process:run" in entry_points
    assert "License-Expression: Apache-2.0" in metadata


def test_sdist_builds_without_the_links(built: Path) -> None:
    (sdist,) = built.glob("capplan-*.tar.gz")
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    below_top = {PurePosixPath(*PurePosixPath(member.name).parts[1:]) for member in members}

    assert not any(member.issym() or member.islnk() for member in members)
    assert {PurePosixPath("src", path) for path in package_files()} <= below_top
    assert PurePosixPath("src", LIBRARY) not in below_top
    needed = ("LICENSE", "README.md", "pyproject.toml", "build_backend/kernel_backend.py")
    assert {PurePosixPath(name) for name in needed} <= below_top


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel alone into a new environment; return the folder of its executables."""
    folder = tmp_path_factory.mktemp("venv")
    uv("venv", "--quiet", "--clear", "--python", sys.executable, folder)
    binaries = folder / ("Scripts" if os.name == "nt" else "bin")
    uv("pip", "install", "--quiet", "--offline", "--no-deps", "--python", binaries / "python", wheel)
    return binaries


def run_installed(command: list[Path | str], elsewhere: Path) -> str:
    """Run `command` far from the checkout: dependencies come from this environment, capplan from the wheel."""
    # PYTHONPATH leaves .pth files alone, so this environment's editable capplan stays out of the way.
    dependencies = os.pathsep.join({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    environment = {**os.environ, "PYTHONPATH": dependencies}
    result = subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_installed_wheel_imports(installed: Path, tmp_path: Path) -> None:
    where = run_installed([installed / "python", "-c", "import capplan; print(capplan.__file__)"], tmp_path)

    assert Path(where.strip()).is_relative_to(installed.parent)


def test_the_installed_what_if_page_is_found(installed: Path, tmp_path: Path) -> None:
    program = "from capplan.planner.serve.app import notebook; print(notebook())"
    where = run_installed([installed / "python", "-c", program], tmp_path)

    assert Path(where.strip()).is_relative_to(installed.parent)


def test_the_installed_kernel_runs(installed: Path, tmp_path: Path) -> None:
    options = ("--dcs", "2", "--cass-nodes", "3", "--duration", "100ms", "--replications", "2", "--json")
    compiled, plain = (
        run_installed([installed / "capplan", "simulate", "--engine", engine, *options], tmp_path)
        for engine in ("compiled", "simpy")
    )

    assert compiled == plain
