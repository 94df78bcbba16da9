"""The options of layouts: each lays out a system, and one that lays out another is refused by name."""

import pytest
from capplan.cli.scenario_options import OPTIONS, options_of, with_options

from capplan.cli.main import main
from capplan.models.errors import InputError
from capplan.models.language.scenario import fields_of
from capplan.systems.registry import SYSTEMS, scenario

READINGS = {"virtual_encrypts"}  # of a document, not sides of a layout


def test_every_option_lays_out_a_system_and_every_side_of_a_layout_has_an_option() -> None:
    typed = {name for its in SYSTEMS.values() for name in options_of(its.scenario)}

    assert len(typed) == len(OPTIONS)
    for its in SYSTEMS.values():
        sides = set(fields_of(its.scenario)) - {"system", "tps", "slo", "distance", *READINGS}
        assert sides <= set(OPTIONS), its.name


def test_options_are_read_with_their_units() -> None:
    made = with_options(scenario("fedora4"), {"nodes": 6, "write_share": "5%", "tps": "600/s", "slo": ["drop_rate<1%"]})

    assert made == scenario("fedora4", nodes=6, write_share=0.05, tps=600.0, slo=("drop_rate<1%",))


def test_encryption_is_asked_of_systems_with_cassandra() -> None:
    made = with_options(scenario("openprovider"), {"encryption": "client", "vpn": "kernel"})

    assert made == scenario("openprovider", encryption="client", vpn="kernel")
    with pytest.raises(InputError) as caught:
        with_options(scenario("rhino-shcm"), {"vpn": "kernel"})
    assert str(caught.value).startswith("vpn 'kernel'")


def test_the_rate_that_is_given_replaces_the_one_of_a_file() -> None:
    of_file = scenario("rhino-shcm", sps=1000.0)

    assert with_options(of_file, {"sps": "1300"}).offered_per_s() == pytest.approx(2340.0)
    assert with_options(of_file, {"tps": "900"}).offered_per_s() == 900.0
    with pytest.raises(InputError, match="give one of them"):
        with_options(of_file, {"tps": "900", "sps": "1300"})


def test_a_rate_of_each_client_replaces_that_of_a_file() -> None:
    of_file = scenario("arion", clients=100, tps=500.0)

    assert with_options(of_file, {"rps_per_client": "30/s"}).offered_per_s() == 3000.0
    assert with_options(of_file, {"servers": 2}).offered_per_s() == 500.0
    with pytest.raises(InputError, match="give one of them"):
        with_options(of_file, {"tps": "900", "rps_per_client": "30"})


@pytest.mark.parametrize(
    ("system", "option", "said"),
    [
        ("fedora4", "dcs", "--dcs lays out openprovider, not fedora4, which takes --nodes, --region, --write-share"),
        ("openprovider", "colocated", "--colocated lays out rhino-shcm, not openprovider, which takes --dcs,"),
        ("fedora4", "encryption", "fedora4 has no Cassandra: --encryption lays out openprovider, rhino-shcm and vc"),
        ("arion", "vpn", "arion has no Cassandra: --vpn lays out openprovider and rhino-shcm; it takes --servers, "),
        ("vcider", "vpn", "--vpn lays out openprovider and rhino-shcm, not vcider, which takes --rf, --column-bytes"),
        ("openprovider", "column_bytes", "--column-bytes lays out vcider, not openprovider, which takes --dcs,"),
        ("openprovider", "region", "--region lays out fedora4, not openprovider, which takes --dcs,"),
    ],
)
def test_an_option_of_another_system_is_refused(system: str, option: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        with_options(scenario(system), {option: 3})

    assert said in str(caught.value)


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_systems_lists_the_options_of_each(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["systems"]) == 0
    out = capsys.readouterr().out

    assert name in out
    assert all(option.split("/")[0] in out for option in options_of(SYSTEMS[name].scenario))
