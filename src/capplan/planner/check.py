"""Capacity as code: a file of objectives that a layout must meet in named situations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from capplan.answers.number_words import tenths_of_percent
from capplan.answers.verb_answer import VerbAnswer
from capplan.answers.verdict import CONFIDENCE, OVERLOAD, Answer, Verdict, answer, check_confidence
from capplan.errors import InputError, one_of
from capplan.layout.components import Ratios
from capplan.models.language.document import read_toml
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import parse_share
from capplan.planner.conditions import verdict_of
from capplan.planner.sustained import Judged, JudgingEngine, Strained, read_conditions, words_of
from capplan.systems.registry import read_calibration, resolve, scenario_of

TABLE = "check"
_KEYS = ("survive", "confidence", "fitted")
NO_OVERLOAD, ALL_AT_ONCE = "no overload", "all at once"


@dataclass(frozen=True, kw_only=True)
class CheckedObjective:
    """Whether one objective holds in one situation.

    Attributes
    ----------
    objective
        The objective; `no overload`: the rate is carried; `all at once`: with all objectives met.
    conditions
        The situation, by the words of `survive`: `normal`, `dc`, `dc+compaction`.
    answer
        `yes`, `uncertain` or `no`.
    risk
        Probability that a repeat of the load test does not meet it.
    why
        Why no request succeeds; empty if requests do.
    guessed
        Whether the situation rests on a guess.
    """

    objective: str
    conditions: str
    answer: Answer
    risk: float
    why: str
    guessed: bool

    def in_words(self) -> str:
        """Return in one line what holds or fails."""
        guess = " (a guessed situation)" if self.guessed else ""
        return f"{self.objective}, {self.conditions}{guess}: {self.why or f'risk {tenths_of_percent(self.risk)}'}"


@dataclass(frozen=True, kw_only=True)
class Checked(VerbAnswer):
    """The answer of `check`.

    Attributes
    ----------
    system
        Name of the system.
    layout
        The layout in words.
    scenario
        The fields that are set.
    verdict
        Whether all objectives hold at once, in every situation.
    offered_tps
        Offered peak rate, requests per second over all data centres.
    objectives
        Each objective in each situation.
    engine
        What latencies come from.
    seed
        The seed of every random number.
    version
        The version of capplan.
    """

    SCHEMA = "capplan.check/3"

    system: str
    layout: str
    scenario: Mapping[str, Any]
    verdict: Verdict
    offered_tps: float
    objectives: tuple[CheckedObjective, ...]
    engine: str
    seed: int
    version: str

    @property
    def failed(self) -> tuple[CheckedObjective, ...]:
        """The objectives that do not hold with the required confidence."""
        return tuple(each for each in self.objectives if each.answer != "yes")

    def to_junit(self) -> str:
        """Return the answer as JUnit XML: a test suite with a case for each objective in each situation."""
        suite = ET.Element("testsuite", name=f"capplan check {self.system}", tests=str(len(self.objectives)))
        suite.set("failures", str(len(self.failed)))
        for each in self.objectives:
            case = ET.SubElement(suite, "testcase", classname=each.conditions, name=each.objective)
            if each.answer != "yes":
                ET.SubElement(case, "failure", message=f"{each.answer}: {each.in_words()}")
        ET.indent(suite)
        return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


@dataclass(frozen=True)
class Specification:
    """The contents of a specification file.

    Attributes
    ----------
    scenario : Scenario
        The layout, the offered rate and the objectives.
    survive : tuple of str
        Situations.
    confidence : float
        Probability with which objectives must hold.
    fitted : Path or None
        The calibration to use; None: the system's own.
    """

    scenario: Scenario
    survive: tuple[str, ...]
    confidence: float
    fitted: Path | None = None

    @property
    def situations(self) -> int:
        """The number of situations, normal conditions included."""
        return 1 + len(words_of(self.survive))


def read_specification(path: Path) -> Specification:
    """Read a file: the keys of a scenario, and a table `[check]` with `survive`, `confidence` and `fitted`.

    Raises
    ------
    InputError
        If it cannot be read, or a key or a value is wrong.
    """
    tables = read_toml(path)
    own = tables.pop(TABLE, {})
    if not isinstance(own, dict):
        raise InputError(f"{path}: check = {own!r} must be a table: write [check] above survive = [...]")
    for key in own:
        one_of(_KEYS, key, f"{path}: {key!r} in [check] is unknown")
    survive, fitted = own.get("survive", []), own.get("fitted")
    texts = [survive] if isinstance(survive, str) else survive
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise InputError(f'{path}: survive = {survive!r} must be a list of texts, such as ["dc", "node"]')
    if fitted is not None and not isinstance(fitted, str):
        raise InputError(f"{path}: fitted = {fitted!r} must be the name of a file in quotes")
    return Specification(
        scenario_of(tables, path),
        tuple(texts),
        _confidence(own.get("confidence", CONFIDENCE), path),
        None if fitted is None else path.parent / fitted,
    )


def _confidence(given: object, path: Path) -> float:
    try:
        found = parse_share(str(given))
        check_confidence(found)
    except InputError as error:
        raise InputError(f"{path}: confidence: {error}") from None
    return found


def check(asked: Specification, *, engine: JudgingEngine = "compiled", seed: int = 1) -> Checked:
    """Check every objective in every situation.

    Parameters
    ----------
    asked : Specification
        What to check.
    engine : str
        `compiled` simulates latencies in every situation and scales the solver's with them; `analytic` takes the
        solver's.
    seed : int
        Seed of every random number.

    Raises
    ------
    InputError
        If no rate is given, or a situation or an objective cannot be read.
    """
    fitted = None if asked.fitted is None else read_calibration(asked.fitted)
    whole = resolve(asked.scenario, fitted, seed)
    whole.system.component(Ratios).refuse(
        f"{whole.system.name} cannot be checked: its documents have ratios of throughput only"
    )
    rate = whole.given_per_s
    if rate is None:
        raise InputError("objectives are checked at a rate, and none is given: add one, such as tps = 20000")
    conditions = read_conditions(asked.survive, whole.system, whole.fitted)
    judged = Judged(whole, conditions, rate, asked.confidence)
    if engine == "compiled":
        judged.simulate(seed)
    return Checked(
        system=whole.system.name,
        layout=whole.system.layout(whole.scenario, whole.values),
        scenario=whole.scenario.given(),
        verdict=verdict_of(judged),
        offered_tps=rate,
        objectives=tuple(
            each for strain in judged.strains.values() for each in _checked(judged, strain, asked.confidence)
        ),
        engine=engine,
        seed=seed,
        version=version("capplan"),
    )


def _checked(judged: Judged, strain: Strained, confidence: float) -> Iterator[CheckedObjective]:
    """Yield each objective in a situation, and a combined one if there are several."""
    risks = {NO_OVERLOAD if name == OVERLOAD else name: risk for name, risk in judged.risks(strain).items()}
    if len(judged.case.objectives) > 1:
        risks[ALL_AT_ONCE] = judged.situation(strain).risk
    for name, risk in risks.items():
        yield CheckedObjective(
            objective=name,
            conditions=strain.conditions.word,
            answer=answer(risk, confidence),
            risk=risk,
            why=strain.why,
            guessed=strain.conditions.guessed,
        )
