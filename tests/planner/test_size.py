"""`size` finds what an exhaustive search finds, and its answer holds what it promises."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.planner.sizings import sized

from capplan.errors import InputError
from capplan.layout.situations import Factor, Losses, Situation
from capplan.models.language.scenario import changed
from capplan.models.language.units import parse_share
from capplan.planner.demand.demand import read_demand
from capplan.planner.size.machines import Prices, price_unit, read_prices
from capplan.planner.size.search import Candidate, Family, Search, SizingTarget
from capplan.planner.size.size import SizingQuestion, size
from capplan.planner.size.sizing import Sizing, given_share
from capplan.planner.sustained import Conditions, Strained, at_confidence, read_conditions
from capplan.reports.sizing import sentences
from capplan.simulator.workers import in_process, processes
from capplan.systems.openprovider.scenario import OpenproviderScenario
from capplan.systems.registry import scenario, system

DEMAND = Path(__file__).parents[2] / "docs" / "examples" / "demand.toml"


def target(name: str, survive: str, rate: float, confidence: float = 0.9, **fields: Any) -> SizingTarget:
    """Return what a layout of a packaged system must do."""
    its = system(name)
    fitted = its.fitted()
    base = changed(scenario(name), tps=rate, **fields)
    return SizingTarget(base, fitted, read_conditions([survive], its, fitted), rate, confidence)


@pytest.mark.parametrize(
    ("wanted", "family"),
    [
        (target("fedora4", "node,node+cold", 300.0), Family({}, {"nodes": (1, 9)})),
        pytest.param(
            target("rhino-shcm", "node", 1500.0, slo=("request.p99<500ms",)),
            Family({}, {"cass_nodes": (1, 6)}),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            target("openprovider", "dc", 15_000.0, data_factor=1.0),
            Family({"dcs": 3}, {"cass_nodes": (3, 6), "front_nodes": (1, 2)}),
            marks=pytest.mark.slow,
        ),
        pytest.param(target("fedora4", "", 400.0, 0.99), Family({}, {"nodes": (1, 64)}), marks=pytest.mark.slow),
    ],
)
def test_the_search_finds_what_an_exhaustive_search_finds(wanted: SizingTarget, family: Family) -> None:
    search, exhaustive = Search(wanted, family), Search(wanted, family)
    numbers = np.array(np.meshgrid(*(range(low, high + 1) for low, high in family.sized.values()))).reshape(
        len(family.sized), -1
    )
    every = [exhaustive.at(tuple(int(number) for number in column)) for column in numbers.T]
    safe = [each for each in every if isinstance(each, Candidate) and exhaustive.safe(each)]
    found = search.cheapest()
    assert found is not None
    assert found.cost == min(each.cost for each in safe)
    assert len(search.evaluated) < len(every)


@pytest.mark.parametrize(("confidence", "some"), [(0.9, True), (0.5, True), (0.3, False)])
def test_a_layout_without_hope_is_unsafe(confidence: float, some: bool) -> None:
    """Above a risk of a half, narrow bands raise it instead, so they refuse nothing there."""
    search = Search(target("fedora4", "node", 400.0, confidence), Family({}, {"nodes": (1, 24)}))
    hopeless = [(number,) for number in range(1, 25) if search.hopeless((number,))]

    assert bool(hopeless) == some
    assert not any(search.safe(search.at(each)) for each in hopeless)


def test_the_answer_holds_what_it_promises_and_the_next_smaller_layout_does_not() -> None:
    question = SizingQuestion(survive=("node", "node+cold"), growth_per_year=0.3, years=3.0)
    answer = sized("fedora4", question, tps=200.0)
    assert answer.chosen is not None
    assert answer.planned_tps == pytest.approx(200 * 1.3**3)
    assert [each.conditions for each in answer.chosen.safety] == ["normal", "node", "node+cold"]
    for each in answer.chosen.safety:
        assert each.risk <= 0.1
        assert each.held_tps >= answer.planned_tps
    (smaller,) = answer.near_misses
    assert smaller.cost == answer.chosen.cost - 1
    assert smaller.binding.risk > 0.1
    assert smaller.binding.held_tps < answer.planned_tps
    assert answer.years_remaining is not None
    assert 200 * 1.3**answer.years_remaining == pytest.approx(answer.chosen.held_tps)
    assert answer.guesses == ("cold caches",)


def test_losses_that_leave_no_quorum_rule_a_family_out() -> None:
    question = SizingQuestion(
        survive=("dc",), families={"dcs": (1, 2, 3)}, sized={"cass_nodes": (3, 9), "front_nodes": (1, 1)}
    )
    answer = sized("openprovider", question, tps=12_000.0, data_factor=1.0)
    assert answer.chosen is not None
    assert answer.chosen.fields["dcs"] == 3
    assert [each.fields for each in answer.impossible] == [{"dcs": 1}, {"dcs": 2}]
    assert answer.impossible[1].reason == "unavailable at QUORUM"
    assert answer.not_asked == ("node", "front")


def test_an_impossible_target_names_the_nearest_one() -> None:
    answer = sized("fedora4", SizingQuestion(sized={"nodes": (1, 2)}), tps=2000.0)
    assert answer.answer != "yes"
    assert answer.chosen is None
    (nearest,) = answer.near_misses
    assert answer.nearest_tps == nearest.held_tps
    assert 0 < nearest.held_tps < 2000


def test_more_confidence_and_more_to_survive_never_cost_less() -> None:
    def cost(confidence: float, *survive: str) -> float:
        answer = sized("fedora4", SizingQuestion(survive=survive, confidence=confidence), tps=400.0)
        assert answer.chosen is not None
        return answer.chosen.cost

    assert cost(0.5) <= cost(0.9) <= cost(0.99)
    assert cost(0.9) <= cost(0.9, "node") <= cost(0.9, "node", "node+cold")


def test_the_json_follows_its_schema() -> None:
    for rate in (200.0, 20_000.0):
        document = json.loads(json.dumps(sized("fedora4", SizingQuestion(sized={"nodes": (1, 4)}), tps=rate).to_json()))
        jsonschema.Draft202012Validator(Sizing.json_schema()).validate(document)


@pytest.mark.trust
def test_one_process_and_two_give_the_same_answer() -> None:
    question = SizingQuestion(survive=("dc",), families={"dcs": (3, 4)}, sized={"front_nodes": (1, 2)})
    base = changed(scenario("openprovider"), tps=15_000.0, slo=("acct.mean<20ms",), data_factor=1.0)
    with in_process() as workers:
        alone = size(base, question, workers)
    with processes(2) as workers:
        assert size(base, question, workers) == alone


@pytest.mark.parametrize(
    ("name", "survive", "rate", "fields"),
    [
        ("fedora4", "node,cold,node+cold", 439.0, {"nodes": 5}),
        *(
            pytest.param("openprovider", words, 5_000.0, {"cass_nodes": nodes}, marks=pytest.mark.slow)
            for nodes in (6, 18, 40)
            for words in ("compaction,gc,retries,cold,reattach", "dc+compaction,node+gc,node+cold,dc+retries")
        ),
    ],
)
def test_a_printed_risk_counts_all_draws(name: str, survive: str, rate: float, fields: dict[str, int]) -> None:
    """Situations multiply parameters, so draws that stand for those of the fit need not stand for these."""
    question = SizingQuestion(
        survive=(survive,),
        sized={kind: (number, number) for kind, number in fields.items()},
        families={"dcs": [3]} if name == "openprovider" else {},
        engine="analytic",
    )
    answer = sized(name, question, tps=rate)
    (layout,) = [each for each in (answer.chosen, *answer.near_misses) if each is not None][:1]
    its = target(name, survive, rate)
    every = its.strains(changed(its.base, **layout.fields))
    for safety in layout.safety:
        assert safety.risk == pytest.approx(np.mean(every[safety.conditions].sustained_rates() < rate), abs=0.01)


@pytest.mark.parametrize(
    ("fields", "survive", "sized_from", "dcs", "cost"),
    [
        pytest.param({"rtt": "20ms"}, "dc", {}, (3,), 48.0, marks=pytest.mark.slow),
        pytest.param(
            {"rtt": "20ms"},
            "dc",
            {"cass_nodes": (12, 12), "front_nodes": (1, 24)},
            (3,),
            51.0,
            marks=pytest.mark.slow,
        ),
        pytest.param({"rtt": "15ms"}, "dc", {}, (3,), 48.0, marks=pytest.mark.slow),
        pytest.param({"rtt": "20ms", "data_factor": 2.5}, "dc", {}, (1, 2, 3, 4), 105.0, marks=pytest.mark.trust),
        pytest.param({"rtt": "20ms"}, "dc", {}, (1, 2, 3, 4), 48.0, marks=pytest.mark.trust),
        pytest.param(
            {
                "rtt": "20ms",
                "consistency_read": "LOCAL_QUORUM",
                "consistency_write": "LOCAL_QUORUM",
                "slo": ("acct.p99<200ms",),
            },
            "node,dc",
            {},
            (2,),
            44.0,
            marks=pytest.mark.trust,
        ),
    ],
)
def test_workers_that_wait_for_round_trips_do_not_hide_a_safe_layout(
    fields: dict[str, Any], survive: str, sized_from: dict[str, tuple[int, int]], dcs: tuple[int, ...], cost: float
) -> None:
    question = SizingQuestion((survive,), families={"dcs": dcs}, sized=sized_from, engine="analytic")
    fields = {"tps": 26_360.0, "data_factor": 1.0, **fields}
    answer = sized("openprovider", question, **fields)
    assert answer.chosen is not None
    assert answer.chosen.safe
    assert answer.chosen.cost <= cost


@pytest.mark.slow
def test_an_answer_of_no_names_a_range_that_would_help_and_only_what_was_evaluated() -> None:
    question = SizingQuestion(
        ("dc",), families={"dcs": (3,)}, sized={"cass_nodes": (12, 12), "front_nodes": (1, 3)}, engine="analytic"
    )
    answer = sized("openprovider", question, rtt="20ms", tps=26_360.0, data_factor=1.0)
    assert answer.answer != "yes"
    assert answer.would_help["front_nodes"] == "3..6"
    assert answer.solved <= answer.layouts


def test_where_the_level_rules_out_every_layout_another_level_is_named() -> None:
    """The largest layout, 100 nodes, is too far from the tests to be safe at any level: a smaller one is found."""
    question = SizingQuestion(("dc",), families={"dcs": (2,)}, engine="analytic")
    answer = sized("openprovider", question, tps=12_000.0)
    assert answer.answer == "no"
    assert answer.would_help == {"dcs": "3", "consistency_write": "LOCAL_QUORUM"}


@pytest.mark.slow
def test_a_reserve_is_what_a_stated_factor_would_buy() -> None:
    question = SizingQuestion(("dc",), families={"dcs": (3,)}, engine="analytic")
    found = sized("openprovider", question, tps=12_000.0)
    stated = {value: sized("openprovider", question, tps=12_000.0, data_factor=value) for value in (1.0, 2.0, 3.0)}
    (condition,) = found.conditions
    costs = [None if each is None else each.cost for each in (found.chosen, condition.at_low, condition.at_high)]
    assert costs == [each.chosen.cost for each in stated.values() if each.chosen is not None]
    assert all(each.conditions == () for each in stated.values())
    assert found.chosen is not None
    assert condition.break_even is not None
    its = {
        name: (number, number) for name, number in found.chosen.fields.items() if name in ("cass_nodes", "front_nodes")
    }
    for share, answer in ((0.99, "yes"), (1.01, "uncertain")):
        factor = share * condition.break_even
        assert sized("openprovider", replace(question, sized=its), tps=12_000.0, data_factor=factor).answer == answer


@given(st.floats(0.5, 0.9999))
def test_a_printed_confidence_is_the_one_that_was_given(confidence: float) -> None:
    assert parse_share(given_share(confidence).replace(" ", "")) == pytest.approx(confidence, rel=1e-9)
    assert given_share(confidence) != given_share(1.0)


def test_confidences_cost_no_less_the_higher_they_are() -> None:
    question = SizingQuestion(families={"dcs": (1,)}, sized={"cass_nodes": (3, 30)}, engine="analytic")
    found = sized("openprovider", question, tps=15_000.0, data_factor=1.0)
    costs = [each.cost for each in found.confidences if each.cost is not None]
    assert [each.confidence for each in found.confidences] == [0.5, 0.8, 0.9, 0.95]
    assert len(costs) == 4
    assert costs == sorted(costs)
    assert found.chosen is not None
    assert costs[2] == found.chosen.cost
    for each in found.confidences:
        asked = sized("openprovider", replace(question, confidence=each.confidence), tps=15_000.0, data_factor=1.0)
        assert asked.chosen is not None
        assert asked.chosen.cost == each.cost


@pytest.mark.slow
def test_a_data_centre_has_two_fronts_unless_one_is_asked_for() -> None:
    question = SizingQuestion(("dc",), families={"dcs": (3,)}, sized={"cass_nodes": (4, 6)}, engine="analytic")
    redundant = sized("openprovider", question, tps=15_000.0, data_factor=1.0).chosen
    assert redundant is not None
    assert redundant.fields["front_nodes"] == 2
    single = sized(
        "openprovider",
        replace(question, sized={**question.sized, "front_nodes": (1, 2)}),
        tps=15_000.0,
        data_factor=1.0,
    )
    assert single.chosen is not None
    assert single.chosen.fields["front_nodes"] == 1
    assert single.single_points == ("front",)
    assert system(single.system).component(Losses).kinds["front"] in sentences(single)[-1]


def test_a_layout_is_safe_exactly_if_it_sustains_the_rate_with_the_confidence() -> None:
    wanted = target("openprovider", "node,retries", 12_000.0)
    for strain in wanted.strains(wanted.base).values():
        assert (strain.risk() <= 0.1) == (strain.sustained_per_s(0.9) >= 12_000)


def test_half_as_many_requests_again_are_the_risk_of_that_rate() -> None:
    wanted = target("openprovider", "", 7000.0)
    case = wanted.case(wanted.base)
    surge = Situation(name="surge", meaning="Half as many requests again.", rate=Factor(1.5, 0.0))
    risk = Strained(case, Conditions("surge", situations=(surge,)), 7000.0).risk()

    assert risk == Strained(case, Conditions("normal"), 10_500.0).risk()
    assert 0 < risk < 1


@given(st.lists(st.floats(1.0, 1e5), min_size=1, max_size=60), st.floats(0.01, 0.99), st.floats(1.0, 1e5))
def test_a_rate_with_a_confidence_is_missed_by_at_most_the_rest(
    rates: list[float], confidence: float, offered: float
) -> None:
    array = np.array(rates)
    if offered <= at_confidence(array, confidence):
        assert np.mean(array < offered) <= 1 - confidence + 1e-9


def test_a_price_list_changes_what_is_cheapest(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text('currency = "EUR"\nperiod = "month"\n[machines]\nnode = 9000\nfront = 2500.5\n', encoding="utf-8")
    prices = read_prices(path, system("openprovider"))
    assert price_unit(prices.currency, prices.period) == "EUR a month"
    assert prices.of(scenario("openprovider")) == 3 * 3 * 9000 + 3 * 2 * 2500.5


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[machines]\nnode = 1", "no price of front"),
        ("[machines]\nnode = -1\nfront = 1", "node = -1 is not a price"),
        ("[machines]\nnode = true\nfront = 1", "node = True is not a price"),
        ("[machines]\nnodes = 1\nfront = 1", "did you mean 'node'?"),
        ("prices = 1", "'prices' is unknown"),
        ("machines = 1", r"a table \[machines\]"),
    ],
)
def test_a_price_list_with_an_error_is_refused(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(f'currency = "EUR"\nperiod = "once"\n{text}', encoding="utf-8")
    with pytest.raises(InputError, match=found.replace("?", r"\?")):
        read_prices(path, system("openprovider"))


@pytest.mark.parametrize(
    "head",
    ['currency = "EUR"', 'period = "year"', 'currency = "EUR"\nperiod = "week"', 'currency = 1\nperiod = "year"'],
)
def test_prices_without_a_currency_or_a_period_are_refused(tmp_path: Path, head: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(f"{head}\n[machines]\nnode = 9000\nfront = 1", encoding="utf-8")
    with pytest.raises(InputError, match=r"currency|period"):
        read_prices(path, system("openprovider"))
    with pytest.raises(InputError, match="period"):
        Prices("EUR", {"node": 1.0})


@pytest.mark.parametrize(
    ("name", "question", "fields", "found"),
    [
        ("fedora4", SizingQuestion(survive=("dc",)), {"tps": 100.0}, "did you mean|known are node, cold, retries"),
        ("fedora4", SizingQuestion(), {}, "a layout is sized for a rate"),
        ("fedora4", SizingQuestion(confidence=1.0), {"tps": 100.0}, "a confidence of 1"),
        ("fedora4", SizingQuestion(growth_per_year=-0.1), {"tps": 100.0}, "a growth of -0.1"),
        ("fedora4", SizingQuestion(sized={"nodes": (1, 2_000_000)}), {"tps": 100.0}, "too many to choose from"),
        ("vcider", SizingQuestion(), {}, "vcider cannot be sized"),
    ],
)
def test_a_question_with_an_error_is_refused(
    name: str, question: SizingQuestion, fields: dict[str, Any], found: str
) -> None:
    with pytest.raises(InputError, match=found):
        sized(name, question, **fields)


def test_a_range_that_is_too_wide_ends_at_the_largest_layout_that_exists() -> None:
    """Ten clients cannot use the 64 servers of the usual range."""
    found = sized("arion", SizingQuestion(engine="analytic"), clients=10, tps=50.0)
    assert found.answer == "yes"
    assert found.chosen is not None
    assert found.chosen.machines == {"master": 2}


def sized_for_p99(gc: str | None = None) -> Sizing:
    """One data centre, 9,000 TPS in a year on fresh data, p99 of accounting below 10.7 ms."""
    base = OpenproviderScenario(tps=7500.0, slo=("acct.p99<10.7ms",), data_factor=1.0, gc=gc)
    question = SizingQuestion(
        growth_per_year=0.2,
        years=1.0,
        sized={"cass_nodes": (3, 12), "front_nodes": (2, 2)},
        families={"dcs": [1]},
        engine="analytic",
    )
    return size(base, question)


@pytest.mark.slow
def test_a_guess_does_not_buy_machines_silently() -> None:
    """What published nodes pause costs machines: the answer says which, and up to where it holds."""
    guessed, calm = sized_for_p99(), sized_for_p99("none")
    (condition,) = guessed.conditions

    assert guessed.answer == "yes"
    assert guessed.chosen is not None
    assert calm.chosen is not None
    assert condition.break_even is not None
    assert condition.at_low is not None
    assert condition.value < condition.break_even < condition.expected_high
    assert calm.chosen.cost <= (condition.at_low.cost or 0.0) < guessed.chosen.cost
    assert len(guessed.stages) == len(calm.stages) == 1
    assert condition.measurement in sentences(guessed)[3]


@pytest.mark.slow
def test_a_measured_node_decides() -> None:
    measured = sized_for_p99("0.02%@10ms sd=4ms n=5000")

    assert (measured.answer, measured.conditions) == ("yes", ())


def test_a_plan_in_stages_buys_each_year_what_a_sizing_for_that_year_buys() -> None:
    answer = sized("fedora4", SizingQuestion(survive=("node", "node+cold"), growth_per_year=0.3, years=3.0), tps=200.0)

    assert answer.chosen is not None
    assert answer.stages[-1].layout == answer.chosen
    assert [(each.from_month, each.to_month) for each in answer.stages] == [(0, 12), (12, 24), (24, 36)]
    assert answer.stages[-1].planned_tps == pytest.approx(answer.planned_tps)
    before = 0
    for each in answer.stages:
        alone = sized("fedora4", SizingQuestion(survive=("node", "node+cold")), tps=each.planned_tps)
        assert alone.chosen is not None
        assert each.layout.machines == alone.chosen.machines
        assert each.layout.safe
        assert each.held_tps >= each.planned_tps
        assert 200 * 1.3 ** (each.lasts_months / 12) == pytest.approx(each.held_tps)
        assert each.added["node"] == each.cost_added == each.layout.machines["node"] - before > 0
        before = each.layout.machines["node"]


@pytest.mark.parametrize(
    ("rate", "years", "months"),
    [(320.0, 3.0, [(0, 24), (24, 36)]), (320.0, 2.5, [(0, 24), (24, 30)]), (90.0, 2.5, [(0, 30)])],
)
def test_a_year_that_needs_nothing_more_belongs_to_the_stage_before(
    rate: float, years: float, months: list[tuple[float, float]]
) -> None:
    answer = sized("fedora4", SizingQuestion(growth_per_year=0.3, years=years), tps=rate)
    assert [(each.from_month, each.to_month) for each in answer.stages] == months


@pytest.mark.parametrize(("rate", "growth"), [(200.0, 0.0), (20_000.0, 0.3)])
def test_there_are_no_stages_without_growth_or_without_a_layout(rate: float, growth: float) -> None:
    question = SizingQuestion(growth_per_year=growth, years=3.0, sized={"nodes": (1, 6)})
    assert sized("fedora4", question, tps=rate).stages == ()


@pytest.mark.slow
def test_the_data_of_a_demand_fit_in_every_stage() -> None:
    """Disks decide, so that each stage has the fewest nodes on which the data of its last month fit."""
    demand = replace(read_demand(DEMAND), years=3.0)
    base = OpenproviderScenario(encryption="client", data_factor=1.0)

    def asked(years: float) -> Sizing:
        found = replace(demand, years=years)
        question = SizingQuestion(
            sized={"cass_nodes": (3, 12), "front_nodes": (2, 2)}, families={"dcs": [3]}, demand=found, engine="analytic"
        )
        return size(base, question)

    answer = asked(demand.years)
    assert len(answer.stages) > 1
    for each in answer.stages:
        alone = asked(each.to_month / 12).chosen
        assert alone is not None
        assert each.layout.machines == alone.machines
        assert {safety.conditions for safety in each.layout.safety} == {"normal", "data"}
        assert each.layout.disk_gib_per_node == pytest.approx(alone.disk_gib_per_node)
