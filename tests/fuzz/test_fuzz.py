"""A sample of hostile inputs: each is read, or refused in one sentence; `just faults` tries 300,000."""

import os
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.guided import CORPUS, as_path
from tests.fuzz.inputs import EACH_COMMAND, prepared, tried
from tests.fuzz.rules import Watch, broken_by_reader
from tests.fuzz.targets import TEXTS, readers

from capplan.errors import InputError

SAMPLE = int(os.environ.get("CAPPLAN_TRUST_INPUTS", "400"))


@pytest.fixture(scope="module")
def watch(tmp_path_factory: pytest.TempPathFactory) -> Watch:
    return Watch(tmp_path_factory.getbasetemp())


def test_inputs_are_read_or_refused(tmp_path: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAPPLAN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    prepared(tmp_path)
    numbers = (number for number in range(SAMPLE) if number % EACH_COMMAND)

    assert [failure for number in numbers if (failure := tried(number, tmp_path, watch)) is not None] == []


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=40)  # just trust tries thousands of each
@given(text=st.text(max_size=20) | st.text("0123456789.,:;=<>%-+eE_ kmsd/@*", max_size=12))
def test_texts_are_read_or_refused(name: str, text: str) -> None:
    with suppress(InputError):
        TEXTS[name].read(text)


@pytest.mark.slow
def test_inputs_that_reached_new_code_are_read_or_refused(
    tmp_path: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPPLAN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    targets = {as_path(name): target for name, target in readers(tmp_path).items()}
    with tarfile.open(CORPUS) as corpus:
        inputs = [(each.name, file.read()) for each in corpus if (file := corpus.extractfile(each))]
    broken = {name: broken_by_reader(targets[Path(name).parts[0]].read, data, watch) for name, data in inputs}

    assert inputs
    assert {name: rule for name, rule in broken.items() if rule} == {}


def test_the_corpus_is_small() -> None:
    assert CORPUS.stat().st_size < 2 * 10**6


def test_the_rules_find_what_breaks_them(tmp_path: Path, watch: Watch) -> None:
    def outside(path: Path) -> None:
        path.write_text("x", encoding="utf-8")

    def raising(value: int) -> None:
        raise KeyError(value)

    place = Path(tempfile.gettempdir()) / "capplan-outside"
    assert broken_by_reader(outside, place, watch) == f"touches open {place.resolve()}"
    place.unlink()
    assert broken_by_reader(outside, tmp_path / "inside", watch) is None
    assert broken_by_reader(raising, 1, watch) == "raises KeyError: 1"
