"""`capplan validate --report FOLDER` writes two files; it refuses a bad folder before the work starts."""

from pathlib import Path
from typing import Any

import pytest
from tests.calibration.documented_reports import reported

from capplan.calibration.validation.validation import Validation
from capplan.cli.main import main
from capplan.layout.system import System


def kept(its: System[Any], *_: object, **__: object) -> Validation:
    return reported(its.name)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the refits of the fitted file, whoever made them."""
    monkeypatch.setattr("capplan.cli.validate.validate", kept)


@pytest.mark.usefixtures("quick")
def test_a_report_stands_beside_the_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "not" / "yet"
    main(["validate", "openprovider", "--report", str(folder)])
    out, err = capsys.readouterr()

    assert out.startswith("openprovider: ")
    assert err.startswith(f"capplan: {folder / 'validation.md'} ")
    assert (folder / "validation.md").read_text(encoding="utf-8").startswith("# ")
    assert (folder / "validation.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert sorted(each.name for each in folder.iterdir()) == ["validation.html", "validation.md"]


@pytest.mark.usefixtures("quick")
def test_the_exit_code_is_that_of_the_validation(tmp_path: Path) -> None:
    assert main(["validate", "openprovider", "--report", str(tmp_path)]) == main(["validate", "openprovider"])


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_bad_folder_is_refused_before_the_work(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def worked(*_: object, **__: object) -> Validation:
        raise AssertionError

    monkeypatch.setattr("capplan.cli.validate.validate", worked)
    (tmp_path / "file").write_text("")

    assert main(["validate", "--report", str(tmp_path / name)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("capplan: ")
    assert err.count("\n") == 1
    assert str(tmp_path / name) in err
    assert "file is a file" in err
