"""Text of users: names that forge lines or formulas are refused, and what is echoed is escaped and cut."""

import io
import json
import sys
from pathlib import Path

import pytest

from capplan.cli.main import main
from capplan.cli.shell.messages import ERRORS
from capplan.cli.shell.terminal import write_csv
from capplan.errors import InputError
from capplan.evidence.import_files import import_files
from capplan.evidence.importers.mapped_table import read_mapping
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.lab.packages import downloaded
from capplan.models.language.construct import checked_name
from capplan.models.language.document import read_network, read_toml
from capplan.models.language.units import parse_count, parse_duration_s, parse_rate_per_s, parse_share
from capplan.systems.registry import read_calibration
from capplan.visible_text import LONGEST_NAME, cell, from_cell, short, visible

ROOT = Path(__file__).parents[2]
OWN = ROOT / "docs" / "examples" / "own-measurements"
NETWORK = (ROOT / "docs" / "examples" / "pauses-and-a-lost-node.toml").read_text(encoding="utf-8")
DIGITS = "9" * 5000


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            " ",
            "a\nb",
            "a\rb",
            "a\tb",
            "\x1b[2J",
            "\x07",
            "\x7f",
            "\x9b31m",
            "\u202eabc",
            "\u2066",
            "\u200b",
            "\ufeff",
        ),
        *("\u2028", "\U000e0041", "=1+1", "=cmd|'/c calc'!A0", "+1", "-1", "@sum", "a" * (LONGEST_NAME + 1)),
    ],
)
def test_a_hostile_name_is_refused(name: str) -> None:
    with pytest.raises(InputError) as caught:
        checked_name(name)

    assert visible(str(caught.value)) == str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("name", ["a", "read stage/2", "größe", "κ", "缓存", "µs", "p=1", "a-b", "a@b", "1"])
def test_other_names_are_names(name: str) -> None:
    assert checked_name(name) == name


@pytest.mark.parametrize("begin", ['name = "', '[[classes]]\nname = "', '[[stations]]\nname = "'])
def test_names_of_a_network_follow_the_rule(begin: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(NETWORK.replace(begin, f"{begin}\\u001b[2J", 1), encoding="utf-8")

    with pytest.raises(InputError, match="not shown"):
        read_network(path)


@pytest.mark.parametrize("hostile", ["\x1b[2J.toml", "a\ncapplan: forged.toml", "\x9b31m.json", "\u202e.toml"])
def test_a_terminal_gets_escapes_of_what_is_echoed(hostile: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", hostile]) == 2
    err = capsys.readouterr().err

    assert err.count("\n") == 1
    assert visible(err.rstrip("\n")) == err.rstrip("\n")


@pytest.mark.parametrize("arguments", [["predict", "a" * 5000], ["predict", "--tps", DIGITS], ["x" * 5000]])
def test_a_long_echo_is_cut(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2

    assert len(capsys.readouterr().err) < 1000


def test_a_cut_text_keeps_its_ends() -> None:
    assert short("a short one") == "a short one"
    assert short(f"the name {'x' * 9999} is too long").startswith("the name xxx")
    assert short(f"the name {'x' * 9999} is too long").endswith("xxx is too long")
    assert len(short("word " * 9999)) < 1200


def test_no_cell_is_a_formula(capsys: pytest.CaptureFixture[str]) -> None:
    write_csv(["a", "b"], [["=cmd|'/c calc'!A0", -1.5]])

    assert capsys.readouterr().out == "a,b\n'=cmd|'/c calc'!A0,-1.5\n"


@pytest.mark.parametrize("text", ["plain", "=1", "'=1", "-", "'", "''", "'-", "+49 30", "", "@"])
def test_cells_are_read_back_as_they_were(text: str) -> None:
    assert from_cell(cell(text)) == text
    assert not cell(text).startswith(("=", "+", "-", "@"))


@pytest.mark.parametrize("read", [parse_count, parse_duration_s, parse_rate_per_s, parse_share])
@pytest.mark.parametrize("text", [DIGITS, f"0.{DIGITS}", f"-{DIGITS}%", f"1e{DIGITS}"])
def test_numbers_of_thousands_of_digits_are_refused(read: object, text: str) -> None:
    assert callable(read)
    with pytest.raises(InputError):
        read(text)


@pytest.mark.parametrize("blank", [" ", "\r", "\x1d", "\x85", "\xa0"])
def test_a_share_may_have_any_blank_before_its_sign(blank: str) -> None:
    assert parse_share(f"5{blank}%") == 0.05
    with pytest.raises(InputError, match="did you mean '5%'"):
        parse_share(f"5{blank}")


def test_numbers_of_thousands_of_digits_in_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"dcs = {DIGITS}\n", encoding="utf-8")

    with pytest.raises(InputError, match="digits"):
        read_toml(path)


@pytest.mark.parametrize("size", ["1e999", "-inf", "nanB", DIGITS])
def test_sizes_that_no_body_has_are_refused(size: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--body-limit", size]) == 2
    assert "--body-limit" in capsys.readouterr().err


def test_a_cell_of_a_spreadsheet_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text((OWN / "curve.csv").read_text(encoding="utf-8").replace("30226", "1e400"), encoding="utf-8")

    with pytest.raises(InputError, match="too large"):
        import_files([path], read_mapping(OWN / "columns.toml"))


@pytest.mark.parametrize("listed", ['[1, "a.jar"]', f'["{"a" * 5000}"]', "{}", "[", '["gone.jar"]'])
def test_a_damaged_list_of_downloads_is_made_again(listed: str, tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text(listed, encoding="utf-8")

    assert downloaded(tmp_path / "list.json") == ()


@pytest.mark.parametrize("name", ["a" * 3000 + ".toml", "\udcff\udcfe.toml", "a\x00b.toml", "a" * 3000 + ".json"])
@pytest.mark.parametrize("verb", ["predict", "simulate", "demand", "check"])
def test_names_that_no_file_can_have_are_refused(name: str, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, name]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_number_in_a_choice_of_a_fitted_file_is_refused(tmp_path: Path) -> None:
    text = (ROOT / "src" / "capplan" / "systems" / "openprovider" / "fitted.json").read_text(encoding="utf-8")
    path = tmp_path / "mine.json"
    content = json.loads(text)
    content["hypotheses"][0]["choice"] = dict.fromkeys(content["hypotheses"][0]["choice"], 3)
    path.write_text(json.dumps(content), encoding="utf-8")

    with pytest.raises(InputError, match="not a fitted file"):
        read_calibration(path)


def test_a_terminal_of_ascii_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="ascii", errors=ERRORS)
    monkeypatch.setattr(sys, "stdout", stream)

    assert main(["simulate", "fedora4", "--tps", "50", "--duration", "2s", "--replications", "2"]) == 0
    stream.flush()
    assert b"+-" in written.getvalue()


def test_a_table_keeps_texts_that_look_like_formulas_and_shows_them_safely(tmp_path: Path) -> None:
    notes = ["=cmd|'/c calc'!A0", "-- cold", "'quoted'", "'-", "plain"]
    frame = LOAD_TESTS.frame(LoadTestRow(run_id=str(place), note=note) for place, note in enumerate(notes))
    LOAD_TESTS.write(frame, tmp_path / "table.csv")

    assert ",=" not in (tmp_path / "table.csv").read_text(encoding="utf-8")
    assert LOAD_TESTS.read(tmp_path / "table.csv")["note"].tolist() == notes
