"""Random valid questions to every verb and target break no invariant.

12 in the default tests, 70 with the slow ones and another 70 marked `trust`; `just trust` also asks 10,000 by
`questions_campaign.py`, which resumes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.planner.answered_questions import RELATIONS, answers, violations
from tests.planner.valid_questions import FORMATS, KINDS, PROPOSALS, TARGETS, Asked, asked, drawn, layout, verb_of

from capplan.models.cassandra.consistency import CONSISTENCY_LEVELS
from capplan.models.language.scenario import options_of
from capplan.systems.registry import every_system, system

QUESTIONS, SLOW, USUAL = 140, 70, 13
LONG = 3  # two unlike data centres and each of their losses take half a minute
MENDED = (
    # Other data centres fill the nodes of one to the last: what they leave is loaded as closely as a whole station.
    "predict replicas.json --dcs 3 --rf 5/1/5 --cass-nodes 8/2/17 --native-threads 128 --one-host --tps 1000000",
    # None of something lies beside some of it: no ratio tells how far.
    "predict etcd.json --front-nodes 8 --node-cores 47",
    "predict etcd.json --rf 1 --front-nodes 1",
    "predict tidb.json --read-fraction 0 --clients 10",
    # A percentile of many clients has an interval of its own.
    "predict etcd.json --store-nodes 4 --clients 1000000",
    # Notices come after an answer, and none beside a refusal.
    "predict three-dcs.json --dcs 3 --read-fraction 0 --data-gib 58.7 --cache-gib 9.2 --slo read.mean<107ms",
    # What a loss improves has its reason.
    "predict two-dcs.json --dcs 2",
    "predict openprovider --dcs 2 --front-workers 29 --distance 3100km --data-factor 1.74 --burst-ratio 10",
    # Both the whole layout and what a loss leaves are bounded, with objectives, too.
    "predict rhino-shcm --cass-nodes 4 --no-cache --encryption internode --slo request.p99.9<42.6ms --lose node",
)
"""Questions that once broke an invariant."""


@pytest.mark.parametrize(
    "number",
    [
        each if each < USUAL and each != LONG else pytest.param(each, marks=mark)
        for mark, numbers in ((pytest.mark.slow, range(SLOW)), (pytest.mark.trust, range(SLOW, QUESTIONS)))
        for each in numbers
    ],
)
def test_a_valid_question_breaks_no_invariant(number: int) -> None:
    question = asked(number)
    assert not violations(question), str(question)


@pytest.mark.parametrize(
    "line", [pytest.param(each, marks=[pytest.mark.slow] * ("1000000" in each)) for each in MENDED]
)
def test_a_question_that_broke_an_invariant_breaks_none(line: str) -> None:
    words = (*line.split(), "--engine", "analytic", "--json")
    assert not violations(Asked(0, "predict", (words,)))


@pytest.mark.parametrize(
    ("line", "more"),
    [
        # A layout that was tested has a factor of its own, and other numbers of nodes share it.
        ("predict mixed.json --row-bytes 94000", "--cass-nodes 7"),
        # A document's longer deletes are no error of the model.
        ("predict fedora4 --node-cores 4 --node-speed 30.1 --write-share 0.58 --region eu", "--nodes 4"),
        ("predict fedora4 --node-cores 4 --node-speed 18 --write-share 0.58", "--nodes 4"),
    ],
)
def test_more_machines_carry_no_less_or_a_document_says_why(line: str, more: str) -> None:
    words = (*line.split(), "--engine", "analytic", "--json")
    assert not violations(Asked(0, "more machines", (words, (*words, *more.split()))))


def test_slower_deletes_explain_three_and_four_nodes_if_the_answer_says_so() -> None:
    def answer(nodes: int, capacity: float, *notes: str, system: str = "fedora4") -> dict[str, Any]:
        scenario, carried = {"nodes": nodes}, {"overload_tps": {"value": capacity}}
        return {"system": system, "scenario": scenario, "capacity": carried, "evidence": {"notes": notes}}

    def broken(few: dict[str, Any], more: dict[str, Any]) -> bool:
        return bool(list(RELATIONS["more machines"]([few, more])))

    said = "Here, four nodes or more can carry less than three."
    assert not broken(answer(3, 900), answer(4, 800, said))
    assert broken(answer(3, 900), answer(4, 800))
    assert broken(answer(3, 900), answer(4, 300, said))
    assert broken(answer(4, 900), answer(5, 800, said))
    assert broken(answer(3, 900, system="arion"), answer(4, 800, said, system="arion"))


@pytest.mark.parametrize("system", every_system(), ids=lambda each: each.name)
def test_every_option_that_a_system_declares_is_drawn(system: object) -> None:
    kind = system.scenario  # type: ignore[attr-defined]  # a system
    random = np.random.default_rng(1)
    found = {name for _ in range(40) for name in drawn(kind, random)}

    assert found >= {*options_of(kind)} - {"slo"}


def test_layouts_have_the_extremes_that_people_ask_about() -> None:
    random = np.random.default_rng(1)
    options = [drawn(system("cassandra").scenario, random) for _ in range(400)]
    texts = [{name: str(it) for name, it in each.items()} for each in options]

    assert {it["consistency_read"] for it in texts if "consistency_read" in it} == {*CONSISTENCY_LEVELS}
    assert {it["rf"] for it in texts if it.get("rf", "").isdigit()} >= {str(rf) for rf in range(1, 8)}
    assert any(len({*it.get("cass_nodes", "").split("/")}) > 1 for it in texts)
    assert any(len({*it.get("rf", "").split("/")}) > 1 for it in texts)
    assert any(float(it.get("tps", 0)) > 1e6 for it in texts)


def test_questions_are_about_every_verb_and_format() -> None:
    random = np.random.default_rng(1)
    counts = {name: 40 if name == "documents" else 8 for name in KINDS}
    lines = [line for name in KINDS for _ in range(counts[name]) for line in KINDS[name][1](random)[1]]

    assert {verb_of(line) for line in lines} == {*FORMATS, "proposal", "evidence plot"}
    assert {*PROPOSALS} <= {word for line in lines for word in line}


def test_questions_are_about_every_target() -> None:
    random = np.random.default_rng(1)
    assert {layout(random).name for _ in range(200)} == {*TARGETS}


@pytest.mark.parametrize(("line", "field"), [("etcd.json", "store_nodes"), ("replicas.json", "cass_nodes")])
def test_one_more_machine_carries_what_predict_says_of_it(line: str, field: str) -> None:
    """What rows say of a layout may not hold for the larger one: its figure is no multiple of the smaller one's."""

    def found(*more: str) -> Any:
        (its,) = answers(Asked(0, "predict", (("predict", line, *more, "--engine", "analytic", "--json"),)))
        return its.found

    (one,) = (each for each in found()["one_more"] if each["field"] == field)
    larger = found(f"--{field.replace('_', '-')}", one["value"])["capacity"]["peak_tps"]["value"]
    assert one["capacity_tps"] == pytest.approx(larger, rel=1e-3)


@pytest.mark.parametrize(
    ("ranges", "tps"), [("0..8 --store-nodes 3..40", "19000"), ("1..70 --store-nodes 3..70", "300")]
)
def test_ranges_from_none_and_beyond_what_a_system_can_have_are_searched(ranges: str, tps: str) -> None:
    line = f"size etcd.json --tps {tps} --front-nodes {ranges} --processes 1 --engine analytic --json"
    (its,) = answers(Asked(0, "size", (tuple(line.split()),)))
    assert its.broke == ""
    assert its.found["answer"] == "yes"
