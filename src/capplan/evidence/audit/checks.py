"""A system's checks: read from `audit.toml` in its folder and applied to its documented figures.

A check is data: what is expected and what the document has, as expressions over rows of evidence, and the sentence
that says so. `laws`, `claims` and `readings` each are lists of them:

=========================== ==========================================================================================
`name`, `law`               its id; the law, the claim or the reading in words
`expected`                  what the law, or the figures that a claim speaks of, give
`documented`                what the document says; left out where no figure speaks to the claim
`sentence`                  the finding in words, with expressions between braces
`unit`                      SI unit of both, such as `s`; `1` when left out
`let`                       definitions for this check
`cites`                     ids of rows that the finding names beside those it computes with
`each`                      lists, or names of `lists`: one check for each combination of their entries
`rule`                      `constant` or `never falls`, for a law about a series; it gives `first` and `second`
`over`, `value`, `label`    the series: lists as in `each`, the expression of an entry, and its name in the sentence
=========================== ==========================================================================================

An entry of a list is a text, or a table of texts; `{name}` or `{name.key}` puts it into any text of the check. The
file may have `let` (definitions for all checks), `lists` and `functions` (`name = "module:function"`). The grammar of
expressions is that of `expression`.

The intervals are those that the rounding of the printed figures allows. A verdict of `contradicted` means that no
rounding explains the difference.

References
----------
.. [1] P. J. Denning and J. P. Buzen, "The operational analysis of queueing network models", ACM Computing Surveys
   10(3), 1978: operational laws hold for every system that is observed for long enough, whatever its distributions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from importlib.resources.abc import Traversable
from itertools import combinations, product
from typing import Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from capplan.evidence.audit.expression import Figure, Function, Group, Names, figure, fill
from capplan.evidence.audit.finding import Finding, Part, Severity, Verdict, judge, shown
from capplan.models.errors import InputError, look_up
from capplan.models.language.document import parse_toml

Texts: TypeAlias = dict[str, str]
Lists: TypeAlias = dict[str, list[str | Texts]]
Choices: TypeAlias = dict[str, str | list[str | Texts]]
Pick: TypeAlias = Callable[[Sequence[Figure]], tuple[Figure, Figure]]

FILE = "audit.toml"
_ACTIONS: Mapping[Part, str] = {
    "law": "Fit none of these figures until it is known which is wrong.",
    "claim": "Rely on the figures, not on the claim.",
}


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Check(_Table):
    name: str
    law: str
    sentence: str
    expected: str = ""
    documented: str = ""
    unit: str = "1"
    let: Texts = {}
    cites: list[str] = []
    each: Choices = {}
    rule: Literal["", "constant", "never falls"] = ""
    over: Choices = {}
    value: str = ""
    label: str = ""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if bool(self.over) != bool(self.value):
            raise ValueError("a series must have both 'over' and 'value'")
        if self.rule and not self.over:
            raise ValueError(f"rule {self.rule!r} must have a series: give 'over' and 'value'")
        if not self.rule and not self.expected:
            raise ValueError("'expected' must be given where there is no 'rule'")
        return self


class _File(_Table):
    let: Texts = {}
    lists: Lists = {}
    functions: Texts = {}
    laws: list[_Check] = []
    claims: list[_Check] = []
    readings: list[_Check] = []


@dataclass(frozen=True)
class Entry:
    """An entry of a series: the expression of its value, its name in a sentence, and the definitions that both use."""

    value: str
    label: str
    let: Mapping[str, str]


class Check(_Check):
    """One law, claim or reading, with list entries already inserted into its texts."""

    series: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class Checks:
    """Every check of one system's evidence."""

    laws: tuple[Check, ...] = ()
    claims: tuple[Check, ...] = ()
    readings: tuple[Check, ...] = ()
    functions: Mapping[str, Function] | None = None


def read_checks(folder: Traversable) -> Checks:
    """Read the checks of the system in `folder`.

    Raises
    ------
    InputError
        If the file is missing, is no TOML, or breaks a rule.
    """
    try:
        text = (folder / FILE).read_text(encoding="utf-8")
    except OSError:
        raise InputError(f"{folder.name} has no {FILE}: its evidence cannot be audited") from None
    return parse_checks(text, f"{folder.name}/{FILE}")


def parse_checks(text: str, where: str = FILE) -> Checks:
    """Read checks from TOML `text`; `where` names it in messages.

    Raises
    ------
    InputError
        If `text` is no TOML or breaks a rule.
    """
    try:
        file = _File.model_validate(parse_toml(text, where))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"{where}: {place}: {first['msg'].removeprefix('Value error, ')}") from None
    laws, claims, readings = (
        tuple(check for each in entries for check in _expand(each, file, where))
        for entries in (file.laws, file.claims, file.readings)
    )
    functions = {name: _function(name, value, where) for name, value in file.functions.items()}
    return Checks(laws, claims, readings, functions)


def _function(name: str, value: str, where: str) -> Function:
    try:
        found: Function = EntryPoint(name, value, "").load()
    except (ImportError, AttributeError):
        raise InputError(f"{where}: functions: {name} = {value!r} cannot be imported") from None
    return found


def _expand(check: _Check, file: _File, where: str) -> Iterator[Check]:
    """Yield a check for each combination of the entries of its lists."""
    let = {**file.let, **check.let}
    for texts in _combinations(check.each, {}, file.lists, where):
        series = tuple(
            Entry(_put(check.value, entry), _put(check.label, entry), _put(let, entry))
            for entry in (_combinations(check.over, texts, file.lists, where) if check.over else ())
        )
        yield Check.model_construct(**_put({**dict(check), "let": let}, texts), series=series)


def _combinations(choices: Choices, outer: Texts, lists: Lists, where: str) -> Iterator[Texts]:
    """Yield the texts by name, `name` or `name.key`, for each combination of choices; the last varies fastest."""
    entries = [[_texts(name, entry) for entry in _list(given, outer, lists, where)] for name, given in choices.items()]
    for chosen in product(*entries):
        yield outer | {name: text for texts in chosen for name, text in texts.items()}


def _list(given: str | list[str | Texts], outer: Texts, lists: Lists, where: str) -> list[str | Texts]:
    if not isinstance(given, str):
        return given
    name = _put(given, outer)
    return look_up(lists, name, f"{where}: {name!r} is not one of its lists")


def _texts(name: str, entry: str | Texts) -> Texts:
    return {name: entry} if isinstance(entry, str) else {f"{name}.{key}": text for key, text in entry.items()}


def _put(given: Any, texts: Texts) -> Any:
    """Return a text, or a list or table of texts, with the names replaced by entries."""
    if isinstance(given, dict):
        return {name: _put(each, texts) for name, each in given.items()}
    if isinstance(given, list):
        return [_put(each, texts) for each in given]
    for name, replacement in texts.items():
        given = given.replace(f"{{{name}}}", replacement)
    return given


# ---- Laws about a series: each picks the two figures that speak most against it


def deepest_fall(series: Sequence[Figure]) -> tuple[Figure, Figure]:
    """Return the figures before and after the deepest fall of a series of two or more."""
    return min(combinations(series, 2), key=lambda pair: pair[1].value - pair[0].value)


def farthest_apart(series: Sequence[Figure]) -> tuple[Figure, Figure]:
    """Return the figure with the lowest upper bound and the figure with the highest lower bound.

    Intervals share a point exactly when every two of them do, so these two decide whether one constant fits all.
    """
    least = min(series, key=lambda each: each.interval.high)
    most = max(reversed(series), key=lambda each: each.interval.low)
    return least, most


# For each rule: how it picks `first` and `second` from a series, and what it expects of them.
RULES: Mapping[str, tuple[Pick, str]] = {
    "never falls": (deepest_fall, "at_least(first)"),
    "constant": (farthest_apart, "first"),
}


# ---- Checks applied to figures


def apply(check: Check, scope: Names, part: Part) -> Finding:
    """Apply one check to the rows of `scope`.

    Parameters
    ----------
    check : Check
        A law, a claim or a reading.
    scope : Names
        The figures by id.
    part : str
        Which of them it is.

    Raises
    ------
    InputError
        If the check cannot be computed from them.
    """
    try:
        return _found(check, replace(scope, let=check.let), part)
    except InputError as error:
        raise InputError(f"check {check.name!r}: {error}") from None


def _found(check: Check, scope: Names, part: Part) -> Finding:
    scope = _with_series(check, scope)
    expected = figure(check.expected or RULES[check.rule][1], scope)
    documented = figure(check.documented or "second", scope) if check.documented or check.rule else None
    verdict: Verdict = "untested" if documented is None else judge(expected.interval, documented.interval)
    words = {
        "expected": replace(expected, text=shown(expected.interval, check.unit)),
        "documented": replace(documented, text=shown(documented.interval, check.unit)) if documented else Figure(0.0),
    }
    used = [*(scope.rows[name] for name in check.cites), *expected.rows, *(documented.rows if documented else ())]
    severity: Severity = "refused" if verdict == "contradicted" and part != "reading" else "none"
    return Finding(
        part=part,
        rule=check.name,
        severity=severity,
        means=check.law,
        action=_ACTIONS[part] if severity == "refused" else "",
        figures=tuple(dict.fromkeys(row.id for row in used)),
        expected=expected.interval,
        documented=documented.interval if documented else None,
        unit=check.unit,
        verdict=verdict,
        sentence=fill(check.sentence, replace(scope, values={**scope.values, **words})),
    )


def _with_series(check: Check, scope: Names) -> Names:
    """Add a check's series, and the two figures that its rule picks, to the names that its expressions can use."""
    if not check.series:
        return scope
    series = [_entry(each, replace(scope, let=each.let)) for each in check.series]
    values: dict[str, Figure | Group] = {"series": tuple(series)}
    if check.rule:
        values["first"], values["second"] = RULES[check.rule][0](series)
    return replace(scope, values=values)


def _entry(entry: Entry, scope: Names) -> Figure:
    return replace(figure(entry.value, scope), text=fill(entry.label, scope))
