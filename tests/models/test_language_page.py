"""The published schema and page of the language match the code, and every example on the page is valid."""

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest

from capplan.models.language import distribution, network, station, step, traffic
from capplan.models.language.document import load, network_schema

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "language.md"
HOW_TO = ROOT / "docs" / "how-to" / "describe-a-cluster.md"
EXAMPLES, HOW_TO_EXAMPLES = (
    re.findall(r"^```toml (\w+)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for page in (PAGE, HOW_TO)
)


def test_the_generated_files_are_up_to_date() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "generate" / "schemas.py"))
    for path, text in script["generated"]().items():
        assert path.read_text(encoding="utf-8") == text, f"{path} is stale: uv run python docs/generate/schemas.py"


def test_every_construct_has_a_heading() -> None:
    headings = set(re.findall(r"^##+ (\w+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert network_schema()["$defs"].keys() <= headings


def test_every_field_is_described() -> None:
    for name, construct in network_schema()["$defs"].items():
        for field, about in construct["properties"].items():
            assert field == "kind" or about.get("description", "").endswith("."), f"{name}.{field}"


@pytest.mark.parametrize(("type_", "text"), EXAMPLES + HOW_TO_EXAMPLES)
def test_examples(type_: str, text: str) -> None:
    found: list[Any] = [
        vars(module)[type_] for module in (network, station, step, traffic, distribution) if type_ in vars(module)
    ]
    value = load(found[0], tomllib.loads(text), "example")
    named = tomllib.loads(text).get("kind")
    assert named is None or value.kind == named


def test_every_kind_has_an_example() -> None:
    shown = {tomllib.loads(text).get("kind") for _, text in EXAMPLES}
    kinds = {
        each["properties"]["kind"]["const"]
        for each in network_schema()["$defs"].values()
        if "kind" in each["properties"]
    }
    assert kinds <= shown
