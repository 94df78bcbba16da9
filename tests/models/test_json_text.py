"""JSON that people give: what it may hold, and how its mistakes are named."""

from pathlib import Path

import pytest

from capplan.answers.json_text import DEEPEST, NotJsonError, parse_json
from capplan.errors import InputError
from capplan.layout.fitted_file import read_fitted
from capplan.planner.saved_document import read_document

TWICE = '{"schema": "capplan.fitted/1", "other": [{"same": 1, "same": 2}]}'


@pytest.mark.parametrize("text", ['{"a": [1, {"b": null}]}', b'{"a": [1, {"b": null}]}'])
def test_values_are_read(text: str | bytes) -> None:
    assert parse_json(text, "it", most_parts=4) == {"a": [1, {"b": None}]}


def test_a_key_that_stands_twice_is_named() -> None:
    with pytest.raises(InputError, match="'same'"):
        parse_json(TWICE, "it")


@pytest.mark.parametrize("text", ["", "{", "NaN", "[1e5, -Infinity]", b"\xff", "[" * 10**6, "1" * 5000])
def test_what_is_not_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(NotJsonError):
        parse_json(text, "it")


@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a":', "}")])
def test_values_have_a_depth(begin: str, end: str) -> None:
    parse_json(begin * DEEPEST + "1" + end * DEEPEST, "it")
    with pytest.raises(NotJsonError):
        parse_json(begin * (DEEPEST + 1) + "1" + end * (DEEPEST + 1), "it")


def test_values_have_a_number() -> None:
    parse_json("[1, 2, 3]", "it", most_parts=3)
    with pytest.raises(NotJsonError):
        parse_json("[1, 2, 3, 4]", "it", most_parts=3)


def test_files_have_every_key_once(tmp_path: Path) -> None:
    path = tmp_path / "twice.json"
    path.write_text(TWICE, encoding="utf-8")
    with pytest.raises(InputError, match="'same'"):
        read_fitted(path)
    with pytest.raises(InputError, match="'same'"):
        read_document(path, {"capplan.fitted/1": "calibrate"})
