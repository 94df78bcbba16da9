"""A system of another package needs no edit in capplan: the kiosk, added as docs/how-to/add-a-system.md says."""

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from capplan.calibration.fit.stages import refit_code
from capplan.cli.main import main
from capplan.errors import InputError
from capplan.evidence.table import parse
from capplan.models.language.parameter import defaults
from capplan.systems import registry

TOY = Path(__file__).parent
PAGE = (TOY.parents[1] / "docs/how-to/add-a-system.md").read_text(encoding="utf-8")
FILES = re.findall(r"^```\w+ (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^```console\n\$ (.*?)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the package installed, its entry point included, that Python imports from."""
    folder = tmp_path_factory.mktemp("site")
    project = tomllib.loads((TOY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    shutil.copytree(TOY / "kiosk", folder / "kiosk", ignore=shutil.ignore_patterns("__pycache__"))
    installed = folder / f"{project['name']}-{project['version']}.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", encoding="utf-8"
    )
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in each.items())
        for group, each in project["entry-points"].items()
    )
    (installed / "entry_points.txt").write_text(points, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(folder))
        patched.setenv("COLUMNS", "80")
        patched.setenv("CAPPLAN_CACHE_DIR", str(folder / "cache"))  # another worker may calibrate at the same time
        _forget()
        yield folder
    _forget()


def _forget() -> None:
    """Let the registry look for systems again."""
    for found in (registry._locations, registry.system):
        found.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "kiosk"]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def calibration(site: Path) -> str:
    """What the first command of the page prints; the kiosk is calibrated then."""
    assert site.is_dir()
    with redirect_stdout(io.StringIO()) as printed:
        assert main(shlex.split(COMMANDS[0][0])[1:]) == 0
    return printed.getvalue()


@pytest.fixture(scope="module")
def calibrated(site: Path, calibration: str) -> Path:
    """The folder with the calibrated package."""
    assert calibration
    return site


@pytest.mark.parametrize(("name", "text"), FILES, ids=[name for name, _ in FILES])
def test_the_page_shows_the_files_as_they_are(name: str, text: str) -> None:
    assert (TOY / name).read_text(encoding="utf-8") == text


def test_the_page_shows_every_file() -> None:
    shown = {name for name, _ in FILES}
    assert {path.relative_to(TOY).as_posix() for path in (TOY / "kiosk").glob("*.*")} | {"pyproject.toml"} == shown


def assert_shown(printed: str, shown: str) -> None:
    """Compare what a command prints with what the page shows; `...` there stands for any text."""
    plain = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    assert fnmatchcase(plain, re.sub(r"([\[?*])", "[\\1]", shown).replace("...", "*")), plain


def test_the_first_command_of_the_page_calibrates(calibration: str) -> None:
    assert_shown(calibration, COMMANDS[0][1])


@pytest.mark.parametrize(("command", "shown"), COMMANDS[1:], ids=[command for command, _ in COMMANDS[1:]])
def test_the_commands_of_the_page_print_what_it_shows(
    command: str, shown: str, calibrated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert calibrated.is_dir()
    assert main(shlex.split(command)[1:]) == ("goals are met, 1 missed" in shown)
    assert_shown(capsys.readouterr().out, shown)


def test_another_process_finds_it(calibrated: Path) -> None:
    run = [sys.executable, "-c", "from capplan.cli.process import run; run()"]
    asked = [*run, "predict", "kiosk", "--till-count", "4", "--engine", "analytic", "--json"]
    found = subprocess.run(
        asked, env={**os.environ, "PYTHONPATH": str(calibrated)}, capture_output=True, text=True, check=True
    )

    prediction = json.loads(found.stdout)
    assert prediction["scenario"] == {"system": "kiosk", "till_count": 4}
    assert prediction["capacity"]["peak_tps"]["value"] == pytest.approx(4 / 0.0201, rel=0.01)


def test_the_fit_finds_what_the_figures_were_made_from(calibrated: Path) -> None:
    """A sale takes 20 ms and a payment 80 ms, with some noise in three load tests."""
    fitted = registry.system("kiosk").fitted()

    assert calibrated in registry.system("kiosk").fitted_path.parents
    assert dict(zip(fitted.names, fitted.most_probable, strict=True)) == pytest.approx(
        {"sale_s": 0.020, "payment_s": 0.080}, rel=0.03
    )
    assert {figure.fold for figure in fitted.left_out} == {"one", "two", "four"}


def test_outside_the_measured_range_bands_are_wider(calibrated: Path) -> None:
    assert calibrated.is_dir()
    inside, outside = (registry.resolve(registry.scenario("kiosk", till_count=count)) for count in (4, 16))

    assert (inside.extrapolation.basis, outside.extrapolation.basis) == ("measured", "extrapolated")
    assert outside.extrapolation.doublings == pytest.approx(2.0)
    assert outside.uncertainty.rate.log_sd == pytest.approx(3 * inside.uncertainty.rate.log_sd)


def test_a_fit_depends_on_the_code_of_the_system_but_for_its_comments(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kiosk, found = registry.system("kiosk"), list[str]()
    for name, added in (("same", ""), ("comment", "# a comment\n"), ("code", "ANOTHER = 1\n")):
        folder = shutil.copytree(site / "kiosk", tmp_path / name)
        (folder / "__init__.py").write_text(
            (folder / "__init__.py").read_text(encoding="utf-8") + added, encoding="utf-8"
        )
        monkeypatch.setitem(vars(kiosk), "folder", folder)
        found.append(refit_code(kiosk))

    same, comment, code = found
    assert same == comment != code
    assert same != refit_code(registry.system("vcider"))


def _changed(site: Path, row: str, **cells: str) -> tuple[str, str]:
    """Return the evidence with some cells of a row changed, and where it stands."""
    path = site / "kiosk" / "evidence.csv"
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    names = header.split(",")
    for number, line in enumerate(lines):
        if line.startswith(f"{row},"):
            parts = line.split(",")
            for name, value in cells.items():
                parts[names.index(name)] = value
            lines[number] = ",".join(parts)
    return "\n".join([header, *lines, ""]), str(path)


@pytest.mark.parametrize(
    ("row", "cells", "named"),
    [
        ("one.rate", {"layout": "tills=1"}, ["one.rate", "'tills'", "till_count"]),
        ("two.mean", {"layout": "till_count=2"}, ["two.mean", "tps="]),
        ("two.mean", {"request_class": "sales"}, ["two.mean", "'sales'", "'sale'"]),
        ("two.mean", {"statistic": "maximum"}, ["two.mean", "maximum"]),
        ("four.utilisation", {"quantity": "queue"}, ["four.utilisation", "queue"]),
    ],
)
def test_a_row_that_the_defaults_cannot_predict_is_refused_by_name(
    row: str, cells: dict[str, str], named: list[str], site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kiosk = registry.system("kiosk")
    monkeypatch.setitem(vars(kiosk), "evidence", parse(*_changed(site, row, **cells)))

    with pytest.raises(InputError) as refused:
        kiosk.observations.predicted(kiosk.observations.load_tests(), defaults(kiosk.parameters))
    assert all(each in str(refused.value) for each in named)
