"""Scenarios of `openprovider`: what is refused and how, and the way to a file and back."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from capplan.errors import InputError
from capplan.models.language.document import dump, read, schema, write
from capplan.models.language.scenario import changed
from capplan.systems.openprovider.scenario import OpenproviderScenario


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"dcs": 2.0}, r"dcs: 2\.0"),
        ({"dcs": 2, "rtt": (("0ms", "1ms"), ("1ms",))}, "row 2.*1"),
        ({"dcs": 2, "rtt": (("0ms", "1ms"), ("2ms", "0ms"))}, "same in both directions"),
        ({"system": "openprovidr"}, "'openprovidr'.*'openprovider'"),
        ({"data_factor": 0.0}, "data factor"),
        ({"tps": 0.0}, "tps"),
        ({"cass_nodes": (6, 6), "rf": (3, 3, 2)}, "rf = 3/3/2 has 3 numbers and there are 2"),
        ({"cass_nodes": (6, 1001, 3)}, "cass_nodes = 6/1001/3 is more"),
        ({"dcs": 3, "client_share": "50%/50%"}, "client_share = 50%/50% has 2 numbers"),
        ({"rf": (1, 1), "consistency_read": "THREE"}, "THREE needs 3 replicas"),
    ],
)
def test_bad_input_is_one_sentence(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        OpenproviderScenario(**fields)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "scenario",
    [
        OpenproviderScenario(),
        OpenproviderScenario(
            dcs=1, cass_nodes=6, rf=5, proxy=True, ldap=True, data_factor=2.5, tps=9000.0, slo=("acct.p99<20ms",)
        ),
        OpenproviderScenario(dcs=2, rtt=(("0ms", "1.5ms"), ("1.5ms", "0ms")), consistency_write="EACH_QUORUM"),
        OpenproviderScenario(rtt="3ms", distance="20km"),
        OpenproviderScenario(cass_nodes=(6, 6, 3), rf=(3, 3, 2), front_nodes=(2, 1, 0), client_share=(0.75, 0.25, 0.0)),
        OpenproviderScenario(rtt="dc1-dc2=3ms,dc1-dc3=20ms,dc2-dc3=12ms"),
        OpenproviderScenario(cass_nodes=(6, 3)),
    ],
)
def test_a_scenario_survives_the_way_to_a_file_and_back(scenario: OpenproviderScenario, tmp_path: Path) -> None:
    write(scenario, tmp_path / "layout.toml")
    assert read(OpenproviderScenario, tmp_path / "layout.toml") == scenario
    jsonschema.validate(json.loads(json.dumps(dump(scenario))), schema(OpenproviderScenario))


def test_levels_are_written_in_capitals() -> None:
    assert OpenproviderScenario(consistency_read="local_one").consistency_read == "LOCAL_ONE"


def test_round_trips_are_read_in_any_unit() -> None:
    assert OpenproviderScenario().given_rtt_s() is None
    assert OpenproviderScenario(dcs=2, rtt="1500us").given_rtt_s() == ((0.0, 0.0015), (0.0015, 0.0))
    assert OpenproviderScenario(dcs=2, rtt=(("0", "3ms"), ("3ms", "0"))).given_rtt_s() == ((0.0, 0.003), (0.003, 0.0))
    assert OpenproviderScenario(distance="150km").distance_m() == 150_000


def test_a_changed_scenario_is_checked_anew() -> None:
    assert changed(OpenproviderScenario(), dcs=1) == OpenproviderScenario(dcs=1)
    with pytest.raises(InputError, match="rf = 3 needs"):
        changed(OpenproviderScenario(), cass_nodes=2)


def test_lists_give_the_number_of_data_centres() -> None:
    assert OpenproviderScenario(cass_nodes=(6, 3)).dcs == 2
    assert OpenproviderScenario(client_share=(0.5, 0.3, 0.1, 0.1)).dcs == 4
    assert OpenproviderScenario(rtt="dc1-dc2=3ms").dcs == 2
    assert changed(OpenproviderScenario(dcs=5), rf=(3, 2)) == OpenproviderScenario(dcs=2, rf=(3, 2))


def test_equal_data_centres_have_one_form() -> None:
    written = OpenproviderScenario(
        cass_nodes=(6, 6), rf=(3, 3), front_nodes=(2, 2), client_share=(0.5, 0.5), rtt="dc1-dc2=3ms"
    )

    assert written == OpenproviderScenario(dcs=2, cass_nodes=6, rtt="3ms")
    assert written.given() == OpenproviderScenario(dcs=2, cass_nodes=6, rtt="3ms").given()
    assert not written.unequal
    matrix = (("0ms", "3ms", "3ms"), ("3ms", "0ms", "3ms"), ("3ms", "3ms", "0ms"))
    assert OpenproviderScenario(rtt=matrix) == OpenproviderScenario(rtt="3ms")


def test_pairs_of_round_trips_are_a_matrix() -> None:
    pairs = OpenproviderScenario(rtt="dc1-dc2=3ms,dc1-dc3=20ms,dc2-dc3=0.012s")

    assert pairs.given_rtt_s() == ((0.0, 0.003, 0.02), (0.003, 0.0, 0.012), (0.02, 0.012, 0.0))


def test_every_data_centre_has_its_numbers() -> None:
    made = OpenproviderScenario(cass_nodes=(6, 3), front_nodes=1, client_share=(1.0, 0.0))

    assert made.unequal
    assert made.nodes_by_dc() == (6, 3)
    assert made.rf_by_dc() == (3, 3)
    assert made.fronts_by_dc() == (1, 1)
    assert made.shares_by_dc() == (1.0, 0.0)
    assert OpenproviderScenario(dcs=4).shares_by_dc() == (0.25,) * 4


def test_a_standby_needs_no_policing_nodes() -> None:
    assert OpenproviderScenario(front_nodes=(2, 2, 0), client_share=(0.5, 0.5, 0.0)).fronts_by_dc() == (2, 2, 0)


def test_a_file_has_lists(tmp_path: Path) -> None:
    path = tmp_path / "layout.toml"
    path.write_text(
        'cass_nodes = [6, 3]\nclient_share = [0.8, 0.2]\nrtt = "dc1-dc2=3ms"\nfront_nodes = "2/1"\n', encoding="utf-8"
    )

    assert read(OpenproviderScenario, path) == OpenproviderScenario(
        dcs=2, cass_nodes=(6, 3), client_share=(0.8, 0.2), rtt="3ms", front_nodes=(2, 1)
    )
