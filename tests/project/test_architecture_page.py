"""The architecture page: the files and folders that it names exist, and it names every layer."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "capplan"
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
LAYERS = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file())


def test_every_file_that_is_named_exists() -> None:
    named = re.findall(rf"`((?:{'|'.join(LAYERS)})/[\w/.-]+)`", PAGE)

    assert len(named) > 30
    assert [path for path in named if not (PACKAGE / path).exists()] == []


def test_every_layer_is_described() -> None:
    assert [layer for layer in LAYERS if f"| `{layer}` |" not in PAGE] == []
