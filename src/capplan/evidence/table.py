"""The table of evidence: one row per documented figure, with its source, its rounding and its use.

The folder of a system has the rows in `evidence.csv` and their sources in `source.toml`. A column that the system does
not need may be left out. The columns are

========================= =============================================================================================
`id`                      stable name, `<scenario>[.proxy].<figure>`, such as `ts3.acct_mean`; `all.` for every scenario
`system`, `source`        the system that the figure is about; the key of its source in `source.toml`
`scenario`                the document's name of the layout, or `all`
`dcs`                     data centres
`front_nodes`             front (policing) nodes per DC
`cass_nodes`, `rf`        Cassandra nodes and replicas per DC
`proxy`, `ldap`           `yes`, `no` or empty (does not matter)
`layout`                  other fields of the scenario that the row needs: `key=value` pairs separated by spaces, such
                          as `nodes=3 write_share=0.05`; shares and SI units
`quantity`                what was measured or configured, such as `incoming_rate`, `latency`, `busy_workers`
`request_class`           the class as its system reports it, such as `auth`, `read`, `request`; empty: all requests
`statistic`               one of `Written.statistic`; `unspecified` if the document does not state it
`value`, `unit`           the figure as written and its unit, one of `UNITS`
`text`                    the fact, if it is a word or a version instead of a number
`low`, `high`             the interval that the rounding allows, in the same unit; `inf` for "at least"
`rounding`                the rule behind the interval
`load_kind`               `open`, `closed`, `throttled`, `bursty` or empty (no load test, or not stated)
`conditions`              the conditions of the measurement, in words
`status`                  `configured` (set, not measured), `measured`, `claimed` (stated without data), `derived`
                          (computed from other rows), `contradictory` (refuted by other rows, see the audit), `missing`
                          (the document refers to figures that its text lacks, such as those of a picture; the row
                          states what is missing and where, and has no number). If measured figures disagree and
                          nothing shows which is wrong, all of them are `measured`
`duplicate_group`         shared by rows of one experiment that was reported more than once
`fold`                    the independent scenario that cross-validation leaves out as a whole. A layout measured with
                          and without LDAP is one fold: leaving out only one of the two would leak the other
`use`                     `fit`, `check` (compared, not fitted), `context`, `excluded`
`reason`                  why the row is not fitted
`locator`                 the place in the source
========================= =============================================================================================

**Rounding.** The half-width of an interval is half the step between figures of the same size in the document:

- `openprovider`: rates of 7000 and 7200 have a step of 200, of 10000 and 10500 a step of 500, of 14000 and 14400 a step
  of 400; mean times have a step of 0.5 ms; workers are whole numbers.
- `rhino-shcm`: times have three digits and a step of at least 0.1 ms; CPU has a step of 10 %, heap of 0.1 G.
- `fedora4`: times are whole milliseconds (those of regions are means of two); capacities have a step of 25/s, or of
  10/s if they are not multiples of 25.
- `vcider`: changes of a ratio have a step of 0.1 points; averages over encrypted native have a step of one point.
- `arion`: offered rates have a step of 10000/s, clients of 10 or 100, times of 0.1 ms, watches of 0.1 s.

Words ("a few", "almost twice") become an interval that `rounding` states; this is a guess.

capplan works in SI units: `Evidence.value`, `low` and `high` are in seconds, per second, metres or bytes. CPU is in
cores: 280 % of one core is 2.8.
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal, InvalidOperation
from importlib.resources.abc import Traversable
from typing import Any, Literal

from capplan.answers.verb_answer import VerbAnswer
from capplan.errors import InputError, look_up, one_of
from capplan.evidence.interval import Interval
from capplan.evidence.row_validation import columns_of, parse_rows

# As written -> (SI unit, factor). Factors are decimal text, so that 2.5 ms is exactly 0.0025 s.
UNITS = {
    "1": ("1", "1"),
    "%": ("1", "0.01"),
    "req": ("1", "1"),
    "1/s": ("1/s", "1"),
    "ms": ("s", "0.001"),
    "s": ("s", "1"),
    "min": ("s", "60"),
    "h": ("s", "3600"),
    "km": ("m", "1000"),
    "B": ("B", "1"),
    "MB": ("B", "1000000"),
    "GB": ("B", "1000000000"),
    "GiB": ("B", "1073741824"),
    "name": ("name", "1"),
    "version": ("version", "1"),
    "date": ("date", "1"),
}
TEXT_UNITS = frozenset({"name", "version", "date"})
PERCENTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99}
_REQUIRED = ("id", "system", "source", "scenario", "quantity", "statistic", "unit", "status", "use", "locator")
_COLUMNS_REQUIRED = (*_REQUIRED, "value", "low", "high")
_MOST_DIGITS = 300
_COUNTS = ("dcs", "front_nodes", "cass_nodes", "rf")
# Columns that a fit does not use; they do not change the hash of its data.
_PROSE = frozenset({"rounding", "conditions", "reason", "locator", "written"})


@dataclass(frozen=True)
class Evidence:
    """One documented figure; the module's docstring describes the columns.

    Attributes
    ----------
    value, low, high : float
        The figure and its interval, SI; NaN for a fact in words, which has `text` instead.
    unit : str
        SI unit of these.
    written : str
        The figure as the document has it, with its unit.
    """

    id: str
    system: str
    source: str
    scenario: str
    dcs: int | None
    front_nodes: int | None
    cass_nodes: int | None
    rf: int | None
    proxy: bool | None
    ldap: bool | None
    layout: Mapping[str, str] = field(hash=False)
    quantity: str
    request_class: str
    statistic: str
    value: float
    text: str
    unit: str
    low: float
    high: float
    rounding: str
    load_kind: str
    conditions: str
    status: str
    duplicate_group: str
    fold: str
    use: str
    reason: str
    locator: str
    written: str

    @property
    def interval(self) -> Interval:
        """The figure with its rounding, SI."""
        return Interval(self.value, self.low, self.high)


@dataclass(frozen=True, kw_only=True)
class Written:
    """A row as its file has it; None for an empty cell. The module's docstring describes the columns."""

    id: str | None = None
    system: str | None = None
    source: str | None = None
    scenario: str | None = None
    dcs: int | None = None
    front_nodes: int | None = None
    cass_nodes: int | None = None
    rf: int | None = None
    proxy: bool | None = None
    ldap: bool | None = None
    layout: str | None = None
    quantity: str | None = None
    request_class: str | None = None
    statistic: (
        Literal["constant", "peak", "mean", "minimum", "maximum", "p50", "p75", "p90", "p95", "p99"]
        | Literal["ratio", "difference", "unspecified"]
        | None
    ) = None
    value: str | None = None  # text, so that decimal fractions become SI units exactly
    text: str | None = None
    unit: str | None = None
    low: str | None = None
    high: str | None = None
    rounding: str | None = None
    load_kind: Literal["open", "closed", "throttled", "bursty"] | None = None
    conditions: str | None = None
    status: Literal["configured", "measured", "claimed", "derived", "contradictory", "missing"] | None = None
    duplicate_group: str | None = None
    fold: str | None = None
    use: Literal["fit", "check", "context", "excluded"] | None = None
    reason: str | None = None
    locator: str | None = None


COLUMNS = tuple(columns_of(Written))


@dataclass(frozen=True)
class Source:
    """A source of evidence.

    Attributes
    ----------
    id : str
        Key in `source.toml`.
    title, kind : str
        Title, and kind of document.
    dating : str
        What is known of its date.
    measured : str
        What was measured.
    citation : str
        How to cite it.
    defects : tuple of str
        Known defects.
    """

    id: str
    title: str
    kind: str
    dating: str
    measured: str
    citation: str
    defects: tuple[str, ...]


@dataclass(frozen=True)
class DocumentedFigures(VerbAnswer):
    """The JSON that `evidence list --json` and `evidence show --json` print.

    Attributes
    ----------
    figures
        Documented figures, SI.
    sources
        Where they come from.
    """

    SCHEMA = "capplan.evidence/1"
    UNBOUNDED = tuple(("Evidence", name) for name in ("value", "low", "high"))

    figures: tuple[Evidence, ...]
    sources: tuple[Source, ...]


def read_sources(file: Traversable) -> tuple[Source, ...]:
    """Return the sources in a `source.toml`, in file order; empty if the file does not exist."""
    if not file.is_file():
        return ()
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    return tuple(Source(**{**entry, "defects": tuple(entry["defects"]), "id": key}) for key, entry in table.items())


def read_rows(file: Traversable, system: str) -> tuple[Evidence, ...]:
    """Read the evidence of a system.

    Parameters
    ----------
    file : Traversable
        The `evidence.csv`.
    system : str
        Name of the system.

    Returns
    -------
    tuple of Evidence
        Rows in file order; empty if the file does not exist.

    Raises
    ------
    InputError
        If a row breaks a rule, or is about another system.
    """
    if not file.is_file():
        return ()
    rows = parse(file.read_text(encoding="utf-8"), f"{system}/{file.name}")
    for row in rows:
        if row.system != system:
            raise InputError(f"{system}/{file.name}: row {row.id!r} is about {row.system!r}, not {system!r}")
    return rows


def parse(text: str, where: str) -> tuple[Evidence, ...]:
    """Parse rows of evidence.

    Parameters
    ----------
    text : str
        CSV with a header.
    where : str
        Name of the text, for messages.

    Returns
    -------
    tuple of Evidence
        Rows in order.

    Raises
    ------
    InputError
        If a column is missing or unknown, a cell breaks its rule, or two rows share an id.
    """
    written = parse_rows(text, Written, where, "a table of evidence", _COLUMNS_REQUIRED)
    rows = tuple(_evidence(row, place) for place, row in written)
    repeated = [name for name, count in Counter(row.id for row in rows).items() if count > 1]
    if repeated:
        raise InputError(f"{where}: column 'id' has {repeated[0]!r} more than once: every id must be unique")
    return rows


def _evidence(row: Written, where: str) -> Evidence:
    for name in _REQUIRED:
        if getattr(row, name) is None:
            raise InputError(f"{where}: column {name!r} is empty: it must be given")
    if row.use not in ("fit", "context") and row.reason is None:
        raise InputError(f"{where}: column 'reason' is empty: a row with use {row.use!r} must say why")
    if row.status == "missing" and (row.unit, row.use) != ("name", "excluded"):
        raise InputError(
            f"{where}: a row with status 'missing' must have unit 'name' and use 'excluded': it has no figure"
        )
    for name in _COUNTS:
        if getattr(row, name) is not None and getattr(row, name) < 1:
            raise InputError(f"{where}: column {name!r} has {getattr(row, name)}: it must be a whole number above zero")
    words = {name for name, column in columns_of(Written).items() if column.kind in ("text", "choice")}
    cells = {name: "" if name in words and cell is None else cell for name, cell in vars(row).items()}
    layout = {"layout": _layout(row.layout or "", f"{where}: column 'layout'")}
    return Evidence(**{**cells, **layout, **_figure(row, where)})


def _layout(text: str, what: str) -> dict[str, str]:
    """Parse the pairs of a layout; keep their order."""
    layout: dict[str, str] = {}
    for pair in text.split():
        key, _, value = pair.partition("=")
        if not key.isidentifier() or not value or "=" in value:
            raise InputError(f"{what} has {pair!r}: it must be pairs key=value, separated by spaces, or empty")
        if key in layout:
            raise InputError(f"{what} has {key!r} more than once: every key must be unique")
        layout[key] = value
    return layout


def layout_text(layout: Mapping[str, str]) -> str:
    """Return a layout as text, as its column has it."""
    return " ".join(f"{key}={value}" for key, value in layout.items())


def _figure(row: Written, where: str) -> dict[str, Any]:
    """Return the figure in SI: value, low, high, unit, and as written."""
    name = row.unit or ""
    unit, factor = look_up(UNITS, name, f"{where}: column 'unit' has {name!r}")
    if name in TEXT_UNITS:
        if not row.text or row.value or row.low or row.high:
            raise InputError(f"{where}: unit {name!r} takes a 'text' and leaves 'value', 'low', 'high' empty")
        return {"value": math.nan, "low": math.nan, "high": math.nan, "unit": unit, "written": row.text}
    if row.text:
        raise InputError(f"{where}: column 'text' has {row.text!r}: unit {name!r} takes numbers only")
    value, low, high = (
        _number(getattr(row, column) or "", f"{where}: column {column!r}") * Decimal(factor)
        for column in ("value", "low", "high")
    )
    if not low <= value <= high or value.is_infinite():
        raise InputError(
            f"{where}: column 'value' has {row.value!r}: it must be finite and lie between low and high, "
            f"{row.low} and {row.high}"
        )
    written = f"{row.value}" + {"1": "", "1/s": "/s"}.get(name, f" {name}")
    return {"value": float(value), "low": float(low), "high": float(high), "unit": unit, "written": written}


def _number(text: str, what: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("nan")
    if number.is_nan():
        raise InputError(f"{what} has {text!r}: it must be a number")
    if number.is_finite() and abs(number.adjusted()) > _MOST_DIGITS:
        raise InputError(f"{what} has {text!r}: it must have at most {_MOST_DIGITS} digits before and after the point")
    return number


def select(rows: Iterable[Evidence], **criteria: object) -> tuple[Evidence, ...]:
    """Return the rows whose columns equal all criteria, such as `scenario="TS3", quantity="latency"`.

    Parameters
    ----------
    rows : iterable of Evidence
        The rows to choose from.
    **criteria
        Values by column name.

    Raises
    ------
    InputError
        If a criterion is not a column.
    """
    for name in criteria:
        one_of(COLUMNS, name, f"column {name!r} is unknown")
    return tuple(row for row in rows if all(getattr(row, name) == wanted for name, wanted in criteria.items()))


def by_id(rows: Iterable[Evidence]) -> dict[str, Evidence]:
    """Return the rows by their ids."""
    return {row.id: row for row in rows}


def rows_hash(rows: Iterable[Evidence]) -> str:
    """Return the SHA-256 of `rows` in hexadecimal, independent of their order; prose and empty layouts are ignored."""
    visible = [_visible(row) for row in rows]
    ordered = sorted(visible, key=lambda cells: str(cells["id"]))
    return hashlib.sha256(json.dumps(ordered, sort_keys=True).encode()).hexdigest()


def _visible(row: Evidence) -> dict[str, Any]:
    """Return the cells of a row that a fit can use, without an empty layout."""
    unseen = _PROSE if row.layout else _PROSE | {"layout"}
    return {key: cell for key, cell in asdict(row).items() if key not in unseen}
