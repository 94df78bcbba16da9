"""The checks of a system, read from the `audit.toml` in its folder.

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
file may have `let` (definitions for all checks), `lists`, `functions` (`name = "module:function"`) and `workers` (see
`WorkerCheck`). The grammar of expressions is that of `expression`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from importlib.resources.abc import Traversable
from itertools import product
from typing import Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from capplan.calibration.audit.expression import Function
from capplan.models.errors import InputError, nearest

Texts: TypeAlias = dict[str, str]
Lists: TypeAlias = dict[str, list[str | Texts]]
Choices: TypeAlias = dict[str, str | list[str | Texts]]

FILE = "audit.toml"


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


class _Workers(_Table):
    each: Choices
    scenario: str
    rate: str
    time: str
    busy: str


class _File(_Table):
    let: Texts = {}
    lists: Lists = {}
    functions: Texts = {}
    workers: _Workers | None = None
    laws: list[_Check] = []
    claims: list[_Check] = []
    readings: list[_Check] = []


@dataclass(frozen=True)
class Entry:
    """An entry of a series: the expression of its value, its name in a sentence, and the definitions for both."""

    value: str
    label: str
    let: Mapping[str, str]


@dataclass(frozen=True)
class Check:
    """One law, claim or reading; the fields are those of the file."""

    name: str
    law: str
    sentence: str
    expected: str
    documented: str
    unit: str
    let: Mapping[str, str]
    cites: tuple[str, ...]
    rule: str
    series: tuple[Entry, ...]


@dataclass(frozen=True)
class WorkerCheck:
    """A count of busy workers to compare with Little's law: expressions of a rate, a mean time and the count."""

    scenario: str
    rate: str
    time: str
    busy: str
    let: Mapping[str, str]


@dataclass(frozen=True)
class Checks:
    """Every check of the evidence about one system."""

    laws: tuple[Check, ...] = ()
    claims: tuple[Check, ...] = ()
    readings: tuple[Check, ...] = ()
    workers: tuple[WorkerCheck, ...] = ()
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
        file = _File.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where} is no TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"{where}: {place}: {first['msg'].removeprefix('Value error, ')}") from None
    laws, claims, readings = (
        tuple(check for each in entries for check in _expand(each, file, where))
        for entries in (file.laws, file.claims, file.readings)
    )
    functions = {name: _function(name, value, where) for name, value in file.functions.items()}
    return Checks(laws, claims, readings, tuple(_workers(file, where)), functions)


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
        series = [
            Entry(_put(check.value, entry), _put(check.label, entry), _put_all(let, entry))
            for entry in (_combinations(check.over, texts, file.lists, where) if check.over else ())
        ]
        yield Check(
            name=_put(check.name, texts),
            law=_put(check.law, texts),
            sentence=_put(check.sentence, texts),
            expected=_put(check.expected, texts),
            documented=_put(check.documented, texts),
            unit=check.unit,
            let=_put_all(let, texts),
            cites=tuple(_put(text, texts) for text in check.cites),
            rule=check.rule,
            series=tuple(series),
        )


def _workers(file: _File, where: str) -> Iterator[WorkerCheck]:
    if file.workers is None:
        return
    wanted = file.workers
    for texts in _combinations(wanted.each, {}, file.lists, where):
        scenario, rate, time, busy = (
            _put(text, texts) for text in (wanted.scenario, wanted.rate, wanted.time, wanted.busy)
        )
        yield WorkerCheck(scenario, rate, time, busy, _put_all(file.let, texts))


def _combinations(choices: Choices, outer: Texts, lists: Lists, where: str) -> Iterator[Texts]:
    """Yield the texts by name, `name` or `name.key`, for each combination of choices; the last varies fastest."""
    entries = [[_texts(name, entry) for entry in _list(given, outer, lists, where)] for name, given in choices.items()]
    for chosen in product(*entries):
        yield outer | {name: text for texts in chosen for name, text in texts.items()}


def _list(given: str | list[str | Texts], outer: Texts, lists: Lists, where: str) -> list[str | Texts]:
    if not isinstance(given, str):
        return given
    name = _put(given, outer)
    if name not in lists:
        raise InputError(f"{where}: {name!r} is not one of its lists{nearest(name, lists)}")
    return lists[name]


def _texts(name: str, entry: str | Texts) -> Texts:
    return {name: entry} if isinstance(entry, str) else {f"{name}.{key}": text for key, text in entry.items()}


def _put(text: str, texts: Texts) -> str:
    for name, replacement in texts.items():
        text = text.replace(f"{{{name}}}", replacement)
    return text


def _put_all(let: Texts, texts: Texts) -> Texts:
    return {name: _put(text, texts) for name, text in let.items()}
