"""The register of systems: what each must bring, and how scenarios are made and read by its name."""

from pathlib import Path

import pytest

from capplan.calibration.system import System
from capplan.models.errors import InputError
from capplan.models.language.document import write
from capplan.models.language.parameter import defaults
from capplan.models.language.scenario import changed, fields_of
from capplan.models.language.traffic import Open
from capplan.systems.registry import SYSTEMS, read_scenario, scenario, system

EVERY = pytest.mark.parametrize("its", SYSTEMS.values(), ids=list(SYSTEMS))
WITH_RATES = [its for its in SYSTEMS.values() if its.ratios is None]  # the others are documented as ratios only


@EVERY
def test_a_system_stands_under_its_name(its: System) -> None:
    assert system(its.name) is its
    assert scenario(its.name).system == its.name
    assert isinstance(scenario(its.name), its.scenario)


@EVERY
def test_a_scenario_has_a_rate_and_objectives_or_refuses_them(its: System) -> None:
    assert {"system", "tps", "slo"} <= set(fields_of(its.scenario))
    if its in WITH_RATES:
        assert changed(scenario(its.name), tps=123.0, slo=("capacity>1",)).tps == 123.0
    else:
        for field in ({"tps": 123.0}, {"slo": ("capacity>1",)}):
            with pytest.raises(InputError, match="ratios"):
                changed(scenario(its.name), **field)


@EVERY
def test_the_network_is_of_the_system_at_the_offered_rate(its: System) -> None:
    made = its.network(scenario(its.name), defaults(its.parameters), 300.0)

    assert made.name == its.name
    assert isinstance(made.traffic, Open)
    known = {request.name for request in made.classes}
    assert its.asked(scenario(its.name))
    assert all(set(its.reported[name]) <= known for name in its.asked(scenario(its.name)))


@EVERY
def test_every_parameter_has_a_source_and_fitted_ones_are_free(its: System) -> None:
    assert len({each.name for each in its.parameters}) == len(its.parameters)
    for each in its.parameters:
        assert each.source.strip()
        assert each.value > 0
        assert each.free or each.kind != "fitted"


@EVERY
def test_a_scenario_file_is_read_back(its: System, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    asked = changed(scenario(its.name), slo=("capacity>1",)) if its in WITH_RATES else scenario(its.name, rf=1)
    write(asked, path)
    if its.name != "openprovider":  # the default system need not be named, so its name is not written
        path.write_text(f'system = "{its.name}"\n' + path.read_text(encoding="utf-8"), encoding="utf-8")

    assert read_scenario(path) == asked


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('system = "fedora"\n', "system 'fedora' does not exist; did you mean 'fedora4'"),
        ("system = 3\n", "system = 3 must be a text in quotes"),
        ('system = "fedora4"\nnode = 3\n', "did you mean 'nodes'"),
        ('system = "fedora4"\nnodes = 99\n', "more than the 64"),
        ("dcs = 0\n", "dcs"),
    ],
)
def test_a_wrong_file_is_one_sentence_that_names_it(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_scenario(path)

    assert str(path) in str(caught.value)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_system_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="system 'openprovidr' does not exist; did you mean 'openprovider'"):
        scenario("openprovidr")
