"""The fitted file: written atomically, and valid only for the evidence that it was fitted to."""

import json
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capplan.errors import InputError
from capplan.layout.fitted_file import DRAWS, SCHEMA, rounded, to_json, write
from capplan.models.cassandra.pauses import OF_PAUSES
from capplan.models.language.parameter import defaults
from capplan.systems.registry import documented_names, read_calibration, system

OPENPROVIDER = system("openprovider")
FITTED, PARAMETERS = OPENPROVIDER.fitted(), OPENPROVIDER.parameters
TABLES = ("figures", "left_out", "nested")
WRONG = {"fold": "TS9", "id": "ts9.incoming", "colour": "red"}


@pytest.fixture
def document() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(to_json(FITTED)))
    return made


def refused(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_calibration(path)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


def written(document: Any, folder: Path) -> Path:
    path = folder / "mine.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_a_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    write(FITTED, path)

    assert read_calibration(path) == FITTED
    assert json.loads(path.read_text(encoding="utf-8"))["schema"] == SCHEMA
    assert [each.name for each in tmp_path.iterdir()] == ["mine.json"]


def test_the_packaged_file_is_the_file_that_would_be_written(tmp_path: Path) -> None:
    write(FITTED, tmp_path / "again.json")

    assert (tmp_path / "again.json").read_bytes() == OPENPROVIDER.fitted_path.read_bytes()


def test_what_the_packaged_file_must_have() -> None:
    free = [parameter for parameter in PARAMETERS if parameter.free]

    assert FITTED.names == tuple(parameter.name for parameter in free)
    assert FITTED.fitted_parameters == sum(parameter.kind == "fitted" for parameter in free) <= 6
    assert 0 < FITTED.effective_parameters < len(free)
    assert len(FITTED.draws) == DRAWS >= 500
    assert FITTED.posterior.effective_sample_size >= 200
    assert FITTED.posterior.steps >= 1
    assert 0.1 < FITTED.posterior.acceptance < 1
    # The walk found the draws where they belong: five standard errors.
    assert FITTED.posterior.shift < 5 * np.sqrt(1 / FITTED.posterior.effective_sample_size + 1 / len(FITTED.draws))
    assert [each.deviance for each in FITTED.hypotheses] == sorted(each.deviance for each in FITTED.hypotheses)
    assert len({(each.choice["consistency_read"], each.choice["consistency_write"]) for each in FITTED.hypotheses}) == 4
    assert all(figure.low <= figure.predicted <= figure.high for figure in (*FITTED.figures, *FITTED.left_out))


def test_values_are_all_parameters_and_the_free_ones_are_draws() -> None:
    values = FITTED.values(PARAMETERS)

    assert set(values) == {parameter.name for parameter in PARAMETERS}
    for column, name in enumerate(FITTED.names):
        assert np.array_equal(np.asarray(values[name]), [draw[column] for draw in FITTED.draws])
    held = {name: value for name, value in values.items() if name not in FITTED.names}
    assert held == {name: value for name, value in defaults(PARAMETERS).items() if name in held}


def test_one_value_of_each_is_a_draw_that_keeps_the_correlation() -> None:
    """But pauses are at their medians: they are wide, and correlated with nothing."""
    values, draws = FITTED.median_values(PARAMETERS), np.array(FITTED.draws)
    places = [place for place, name in enumerate(FITTED.names) if name not in OF_PAUSES]

    assert tuple(values[FITTED.names[place]] for place in places) in map(tuple, draws[:, places])
    assert 0 < len(places) < len(FITTED.names)
    for place, name in enumerate(FITTED.names):
        assert name not in OF_PAUSES or values[name] == np.median(draws[:, place])
    assert all(isinstance(value, float) for value in values.values())


def test_the_central_draw_is_chosen() -> None:
    middle = FITTED.draws[0]
    around = tuple(tuple(value * factor for value in middle) for factor in (0.8, 0.9, 1.1, 1.2))

    assert replace(FITTED, draws=(*around, middle)).median_values(PARAMETERS)[FITTED.names[0]] == middle[0]


def test_other_evidence_is_refused(document: dict[str, Any], tmp_path: Path) -> None:
    document["data_hash"] = "0" * 64

    said = refused(written(document, tmp_path))
    assert all(each in said for each in ("'mine.json'", "evidence", "`capplan calibrate openprovider`"))


@pytest.mark.parametrize("name", documented_names())
def test_a_fitted_file_is_refused_when_one_figure_of_its_evidence_changes(name: str) -> None:
    """Each packaged file is of today's evidence; with any fitted figure a little different it no longer is."""
    its = system(name)
    assert its.fitted().system == name
    place = next(number for number, row in enumerate(its.evidence) if row.use == "fit")
    rows = list(its.evidence)
    rows[place] = replace(rows[place], value=1.001 * rows[place].value)
    changed = copy(its)
    vars(changed).update(evidence=tuple(rows))
    del vars(changed)["data_hash"]

    with pytest.raises(InputError, match="evidence"):
        changed.fitted()


def test_other_parameters_are_refused(document: dict[str, Any], tmp_path: Path) -> None:
    document["names"][0] = "former_s"

    assert "parameters" in refused(written(document, tmp_path))


@pytest.mark.parametrize("draws", [2, DRAWS - 1, DRAWS + 1])
def test_another_number_of_draws_is_refused(draws: int, document: dict[str, Any], tmp_path: Path) -> None:
    document["draws"] = (2 * document["draws"])[:draws]

    assert f"{draws}, not {DRAWS}" in refused(written(document, tmp_path))


def test_an_unknown_system_is_refused(document: dict[str, Any], tmp_path: Path) -> None:
    document["system"] = "openprovidr"

    assert "did you mean 'openprovider'?" in refused(written(document, tmp_path))


NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("place", "values"),
    [
        ("schema", ["capplan.fitted/1", None]),
        ("unknown", [1]),
        ("system", [5]),
        ("seed", [1.5, "1"]),
        ("draws", [[], [[0.001]], 3, *([[value] * len(FITTED.names)] for value in ("a", -1.0, NAN))]),
        ("most_probable", [[]]),
        ("hypotheses", [[]]),
        ("fitted_parameters", [None]),
        ("effective_parameters", [NAN, "6"]),
        ("figures", [[]]),
        ("left_out", [[], [{"id": "ts1.incoming"}]]),
        ("nested", [[], 3]),
        ("nested.0.without", ["TS1", "TS9", "", None]),  # a figure of TS1: without TS1 it is left out once, not twice
        ("posterior", [3]),
        ("posterior.effective_sample_size", [-1.0, NAN]),
        ("posterior.steps", [-1, "20"]),
        ("posterior.acceptance", [1.5, -0.1]),
        ("posterior.shift", [INFINITE]),
        ("posterior.laplace", [2.0, None]),
        ("posterior.colour", [1.0]),
        *((f"{table}.3.predicted", [0.0, -1.0, NAN, INFINITE, "1", None, 10**400]) for table in TABLES),
        *((f"{table}.3.{key}", [value]) for table in TABLES for key, value in WRONG.items()),
    ],
)
def test_a_changed_file_is_refused(place: str, values: list[Any], document: dict[str, Any], tmp_path: Path) -> None:
    *way, last = place.split(".")
    changed: Any = document
    for key in way:
        changed = changed[int(key) if key.isdigit() else key]
    for value in values:
        changed[last] = value
        said = refused(written(document, tmp_path))
        assert "'mine.json'" in said
        assert SCHEMA in said


@pytest.mark.parametrize("table", TABLES)
def test_a_figure_is_there_once(table: str, document: dict[str, Any], tmp_path: Path) -> None:
    whole = document[table]
    for broken in (whole[1:], [*whole, whole[0]], [whole[0], *whole[:-1]]):
        assert SCHEMA in refused(written({**document, table: broken}, tmp_path))


def test_a_missing_key_is_refused(document: dict[str, Any], tmp_path: Path) -> None:
    for key in document:
        left = {name: value for name, value in document.items() if name != key}
        assert SCHEMA in refused(written(left, tmp_path))


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"3", b"[" * 100_000],
    ids=["empty", "cut", "list", "3", "deep"],
)
def test_a_broken_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(content)

    assert SCHEMA in refused(path)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(b"\xff\xfe\x00")

    assert "UTF-8" in refused(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "none.json"

    assert f"{path} does not exist" in refused(path)
    assert str(tmp_path) in refused(tmp_path)


def test_a_system_that_is_not_calibrated(tmp_path: Path) -> None:
    its = copy(OPENPROVIDER)
    vars(its).update(folder=tmp_path)

    with pytest.raises(InputError, match="`capplan calibrate openprovider`"):
        its.fitted()


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mine.json"
    write(FITTED, path)
    before = path.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    for step in ("write_text", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(Path, step, full)
            with pytest.raises(InputError, match=r"mine\.json cannot be written: No space left on device"):
                write(replace(FITTED, seed=FITTED.seed + 1), path)
        assert path.read_bytes() == before
        assert [each.name for each in tmp_path.iterdir()] == ["mine.json"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write(FITTED, tmp_path / "none" / "mine.json")


def test_what_is_not_finite_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write(replace(FITTED, effective_parameters=float("nan")), tmp_path / "mine.json")
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_is_seen_at_once(tmp_path: Path) -> None:
    its = copy(OPENPROVIDER)
    vars(its).update(folder=tmp_path)
    for seed in (11, 12):
        write(replace(FITTED, seed=seed), its.fitted_path)
        assert its.fitted().seed == seed


def test_rounding_keeps_seven_digits() -> None:
    assert rounded(0.0012345678901) == 0.001234568
    assert rounded(10499.96) == 10499.96
