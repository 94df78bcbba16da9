"""Bad input ends with exit code 2 and one sentence that names what is wrong, before anything is computed or written."""

import shlex
from pathlib import Path

import pytest
from tests.cli.commands import CLOSED, NETWORK, refused

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LISTED = (HERE / "refused.txt").read_text(encoding="utf-8").splitlines()
LINES = [line for line in LISTED if line and not line.startswith("#")]
DEMAND = 'subscribers = 900_000\n[busy_hour]\nsessions = 1\nlength_s = "30min"\ninterim_updates = 5\n'

DEEP = f"[{'.'.join('a' * 200_000)}]\n"  # as long as this, the library takes minutes


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the files that the commands name, and no lab beside it."""
    (tmp_path / "cache").mkdir()
    place = tmp_path / "folder"
    place.mkdir()
    for link in ("docs", "tests"):
        (place / link).symlink_to(ROOT / link)
    for name, text in (
        ("mine.toml", NETWORK),
        ("closed.toml", CLOSED),
        ("demand.toml", DEMAND),
        ("bad.json", "{}"),
        ("deep.toml", DEEP),
    ):
        (place / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(place)
    monkeypatch.setenv("CAPPLAN_CACHE_DIR", str(tmp_path / "cache"))
    return place


@pytest.mark.parametrize("line", LINES)
def test_bad_input_is_one_sentence(line: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command, _, parts = line.partition(" => ")
    before = sorted(folder.iterdir())
    sentence = refused(capsys, *shlex.split(command))

    assert [part for part in parts.split(" | ") if part not in sentence] == []
    assert sorted(folder.iterdir()) == before
