"""The options of a command are the fields of its target's scenario; an option of another system is refused by name."""

from typing import Any

import pytest
from tests.cli.commands import predicted_scenarios

from capplan.cli.main import main
from capplan.cli.shell.scenario_command import described_options, flag, typed, with_options
from capplan.errors import InputError
from capplan.models.language.scenario import Scenario, defaults_of, options_of
from capplan.systems.registry import names, scenario, system


def flags(name: str) -> set[str]:
    kind: type[Scenario] = system(name).scenario
    return {flag(field) for field in options_of(kind)}


@pytest.mark.parametrize("name", names())
def test_help_lists_the_options_of_the_target_and_no_others(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    own, every = flags(name), set[str]().union(*map(flags, names()))
    assert main(["predict", name, "--help"]) == 0
    listed = set(capsys.readouterr().out.split())

    assert own <= listed
    assert not (every - own) & listed


@pytest.mark.parametrize("verb", ["predict", "simulate", "sweep", "size", "outages", "next-test", "proposal"])
@pytest.mark.parametrize("name", names())
def test_every_verb_takes_every_option_of_a_target(verb: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A parameter of a verb's function with the name of an option would hide it."""
    assert main([verb, name, "--help"]) == 0
    assert flags(name) <= set(capsys.readouterr().out.replace("/", " ").split())


def test_options_are_read_with_their_units() -> None:
    made = with_options(scenario("fedora4"), {"nodes": 6, "write_share": "5%", "tps": "600/s", "slo": ["drop_rate<1%"]})

    assert made == scenario("fedora4", nodes=6, write_share=0.05, tps=600.0, slo=("drop_rate<1%",))


def test_unequal_data_centres_are_written_with_slashes() -> None:
    texts = {
        "cass_nodes": "6/6/3",
        "rf": "3/3/2",
        "front_nodes": "2/2/1",
        "client_share": "50%/30%/20%",
        "rtt": "dc1-dc2=3ms,dc1-dc3=20ms,dc2-dc3=18ms",
    }
    made = with_options(scenario("openprovider", dcs=5), texts)

    assert made == scenario(
        "openprovider",
        dcs=3,
        cass_nodes=(6, 6, 3),
        rf=(3, 3, 2),
        front_nodes=(2, 2, 1),
        client_share=(0.5, 0.3, 0.2),
        rtt=(("0ms", "3ms", "20ms"), ("3ms", "0ms", "18ms"), ("20ms", "18ms", "0ms")),
    )


def test_an_equal_layout_has_one_answer_however_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    usual = ["simulate", "--duration", "1s", "--tps", "500", "--json", "--dcs", "2", "--cass-nodes", "2", "--rf", "2"]
    lists = [*usual[:6], "--cass-nodes", "2/2", "--rf", "2/2", "--front-nodes", "2/2", "--client-share", "0.5/0.5"]
    answers = []
    for words in (usual, lists):
        assert main(words) == 0
        answers.append(capsys.readouterr().out)

    assert answers[0] == answers[1]


def test_options_go_before_a_file() -> None:
    mine = scenario("openprovider", dcs=2, cass_nodes=5, rtt="9ms", proxy=True)

    assert with_options(mine, {"cass_nodes": "4", "proxy": False}) == scenario(
        "openprovider", dcs=2, cass_nodes=4, rtt="9ms", proxy=False
    )
    assert with_options(mine, {"distance": "80km"}) == scenario(
        "openprovider", dcs=2, cass_nodes=5, distance="80km", proxy=True
    )


def test_encryption_is_an_option_of_systems_with_cassandra() -> None:
    made = with_options(scenario("openprovider"), {"encryption": "client", "vpn": "kernel"})

    assert made == scenario("openprovider", encryption="client", vpn="kernel")
    with pytest.raises(InputError, match="encryption"):
        with_options(scenario("rhino-shcm"), {"vpn": "kernel"})


@pytest.mark.parametrize(
    ("name", "of_file", "option", "offered_per_s"),
    [
        ("rhino-shcm", {"sps": 1000.0}, {"sps": "1300"}, 2340.0),
        ("rhino-shcm", {"sps": 1000.0}, {"tps": "900"}, 900.0),
        ("arion", {"clients": 100, "tps": 500.0}, {"rps_per_client": "30/s"}, 3000.0),
        ("arion", {"clients": 100, "tps": 500.0}, {"servers": 2}, 500.0),
    ],
)
def test_a_rate_that_is_given_replaces_that_of_a_file(
    name: str, of_file: dict[str, Any], option: dict[str, Any], offered_per_s: float
) -> None:
    assert with_options(scenario(name, **of_file), option).offered_per_s() == pytest.approx(offered_per_s)


@pytest.mark.parametrize(("name", "other"), [("rhino-shcm", "sps"), ("arion", "rps_per_client")])
def test_two_rates_exclude_each_other(name: str, other: str) -> None:
    with pytest.raises(InputError, match=r"--tps"):
        with_options(scenario(name), {"tps": "900", other: "30"})


def test_every_default_and_flag_is_described() -> None:
    described = described_options(system("openprovider").scenario)
    usual = defaults_of(system("openprovider").scenario)

    assert str(usual["cass_nodes"]) in described["--cass-nodes"]
    assert typed(system("openprovider").scenario, "proxy") == "--proxy/--no-proxy"


TYPED = {
    "openprovider": "--dcs 2 --cass-nodes 4 --rf 2 --front-nodes 3 --front-workers 32 --consistency-read ONE "
    "--consistency-write ALL --rtt 3ms --proxy --ldap --data-factor 2 --encryption client --vpn user "
    "--client-share 70%/30% --reconnects 1% --tps 10",
    "rhino-shcm": "--cass-nodes 5 --rf 2 --colocated --no-cache --encryption client --vpn user "
    "--reconnects 0.5 --sps 10",
    "fedora4": "--nodes 2 --write-share 5% --region eu --tps 10/s",
    "vcider": "--rf 1 --column-bytes 64 --encryption none",
    "cassandra": "--cluster mine --dcs 2 --cass-nodes 4 --rf 2 --client-share 70%/30% --node-cores 4 "
    "--consistency-read ONE --consistency-write ALL --read-fraction 80% --row-bytes 4kB --cache-state cold "
    "--no-token-aware --rtt 3ms --encryption client --clients 64",
    "two-tier": "--front-nodes 2 --front-cores 8 --store-nodes 5 --node-cores 8 --rf 5 --write-waits all "
    "--read-fraction 80% --clients 64",
    "arion": "--servers 2 --clients 50 --stream-messages 10 --rps-per-client 3",
}


@pytest.mark.parametrize("name", names())
def test_every_option_is_read_from_a_command_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each one, so that a kind of field that the command line reads wrongly is seen."""
    asked = predicted_scenarios(monkeypatch)
    words = TYPED[name].split()
    given = {word.removeprefix("--").removeprefix("no-") for word in words if word.startswith("--")}
    kind: type[Scenario] = system(name).scenario
    own = {flag(field)[2:]: field for field in options_of(kind)}
    usual = defaults_of(kind)

    assert main(["predict", name, *words, "--json"]) == 0
    assert {option for option in given if getattr(asked[0], own[option]) != usual[own[option]]} == given
