"""`capplan compare`: both layouts have one rate."""

from pathlib import Path

import pytest

from capplan.cli.main import main


@pytest.mark.parametrize(("rate", "said"), [(300, False), (400, True)])
def test_a_rate_that_is_ignored_is_named(
    rate: int, said: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / "one.toml", tmp_path / "other.toml"]
    for file, each, nodes in zip(files, (300, rate), (6, 8), strict=True):
        file.write_text(f'system = "fedora4"\nnodes = {nodes}\ntps = {each}\n', encoding="utf-8")
    assert main(["compare", *map(str, files), "--engine", "analytic"]) == 0
    assert ("other.toml is ignored" in capsys.readouterr().err) is said
