"""The answer of `demand` for people: rates, a re-attach storm, data, and how long they fit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby

from capplan.answers.number_words import rate, share, significant, tenths_of_percent
from capplan.answers.results import Band
from capplan.answers.verdict import risk_in_words
from capplan.models.language.scenario import Scenario
from capplan.planner.demand.demand import GUESS, Demand
from capplan.planner.demand.forecast import (
    ClassRates,
    Fit,
    Forecast,
    Layout,
    ReattachStorm,
    disk_gib_per_node,
    months_until,
    volume,
)
from capplan.reports.document import Block, Break, Bullets, Fact, Heading, Table, more, table
from capplan.reports.numbers import Format, per_second, to_ends

_PER_YEAR = 12
_AS_HIGH = 0.99  # of a peak: the same within what is printed
_ROUNDING_S = 1e-6  # between the end of a window and the begin of the next
_TIMES = 6  # rows of a table of the time after an outage


def describe(found: Forecast, name: str, explain: bool = False) -> Iterator[Block]:
    """Yield the description of a forecast.

    Parameters
    ----------
    found : Forecast
        The answer.
    name : str
        The file of the demand.
    explain : bool
        Show every assumption with its source, too.
    """
    yield Heading(f"{name}: {_load(found)}", 1)
    yield Break()
    if found.layout is not None:
        yield Fact("Answer", _answer(found))
    if found.reattach is not None:
        yield from _busy_hour(found)
        yield from _reattach(found, found.reattach)
    if found.layout is not None:
        yield Break()
        yield from _layout(found, found.layout)
    if found.layout is not None or found.reattach is not None:
        yield Break()
    yield _over_time(found)
    yield Break()
    yield from _assumptions(found, explain)
    yield more([*([] if explain else ["--explain"]), "--json"])


def _load(found: Forecast) -> str:
    """Return subscribers, or stated rates, in words."""
    last, first, noun = found.busy_hour.total_per_s, found.months[0].busy_hour_per_s.value, "operations per second"
    if found.subscribers is not None and found.subscribers_today is not None:
        last, first, noun = found.subscribers, found.subscribers_today, "subscribers"
    if not found.years:
        return f"{_count(last)} {noun}"
    growth = found.growth_per_year
    yearly = share(growth.value)
    if growth.low != growth.high:
        yearly += f" ({share(growth.low)} to {share(growth.high)})"
    return f"{_count(last)} {noun} in {found.years:g} years, {_count(first)} today, growth {yearly} a year"


def _busy_hour(found: Forecast) -> Iterator[Fact]:
    each, usual = found.session, found.busy_hour
    if each is None or found.starts_per_s is None or found.open_sessions is None:
        return
    classes = f"auth {rate(usual.auth_per_s)}, acct {rate(usual.acct_per_s)}"
    yield Fact("Busy hour", f"{per_second(usual.total_per_s)} requests: {classes}")
    requests = f"{significant(each.auth)} auth, 1 start, {significant(each.interim)} interim, 1 stop"
    yield Fact("Session", f"{significant(each.total)} requests: {requests}")
    yield Fact("Sessions", f"{per_second(found.starts_per_s)} start, {_count(found.open_sessions)} open at once")
    if usual.handshakes_per_s:
        often = tenths_of_percent(usual.handshakes_per_request)
        yield Fact("Handshakes", f"{per_second(usual.handshakes_per_s)} of TLS, {often} of the requests")


def _reattach(found: Forecast, storm: ReattachStorm) -> Iterator[Fact]:
    start = storm.peak.from_s
    again = f"{_count(storm.sessions)} sessions start again after an outage"
    highest, window_s = storm.peak.rates.total_per_s, storm.peak.to_s - start
    until_s = storm.peak.to_s
    for each in storm.over_time:
        if each.from_s - _ROUNDING_S < until_s < each.to_s and each.rates.total_per_s > _AS_HIGH * highest:
            until_s = each.to_s
    peak = f"peak {per_second(highest)} (mean of {window_s:g} s), {start:g} to {until_s:g} s after its end"
    yield Fact("Re-attach", f"{again}: {peak}, {significant(storm.times_busy_hour)} times the busy hour")
    if storm.updates_after_s is not None and storm.updates_peak_per_s is not None:
        updates = f"up to {per_second(storm.updates_peak_per_s)} interim updates"
        yield Fact("", f"{storm.updates_after_s:g} s later {updates} of these sessions at once")
    if storm.handshakes_peak_per_s > found.busy_hour.handshakes_per_s:
        yield Fact("", f"{per_second(storm.handshakes_peak_per_s)} TLS handshakes when clients connect again")


def _layout(found: Forecast, layout: Layout) -> Iterator[Fact]:
    yield Fact("Layout", layout.words)
    for text in layout.assumed:
        yield Fact("Condition", text)
    for each in found.fits:
        yield Fact(each.what.capitalize(), _fit(each))
    if found.reattach is not None:
        yield Fact("Catch-up", _served(found, found.reattach, layout))
    if found.disk_needed_gib is not None and not any(each.what == "disk" for each in found.fits):
        yield Fact("Disk", f"{_banded(found.disk_needed_gib)} GiB per node, with headroom")


def _served(found: Forecast, storm: ReattachStorm, layout: Layout) -> str:
    """Return in words whether and when the layout serves a mass re-attach."""
    capacity, served_s = layout.reattach_capacity, found.reattach_served_s
    if storm.peak.rates.total_per_s <= capacity.value:
        words = "the layout keeps up with the re-attach"
    elif served_s is None or math.isinf(served_s):
        words = "the layout never catches up with the re-attach"
    else:
        words = f"the re-attach is served {significant(served_s)} s after the outage at the earliest"
    return f"{words}, with {per_second(capacity.value)} ({to_ends(capacity)}) carried"


def _answer(found: Forecast) -> str:
    worst = max(found.fits, key=lambda each: each.risk)
    grows = found.years and found.growth_per_year.value > 0
    when = f"in {_PER_YEAR * found.years:g} months" if grows else "today"
    return f"{found.answer} ({risk_in_words(worst.risk, f'that the {worst.what} does not fit {when}')})"


def _fit(each: Fit) -> str:
    if each.what == "rate":
        words = f"{per_second(each.needed.value)} needed, {rate(each.limit.value)} ({to_ends(each.limit)}) carried"
    else:
        words = f"{_banded(each.needed)} GiB per node needed with headroom, {each.limit.value:,.0f} there"
    return f"{words}: {until(each.months)}"


def until(months: Band) -> str:
    """Return in words how long something fits."""
    if math.isinf(months.value):
        return "fits" if math.isinf(months.low) else f"fits, at worst until month {months.low:.0f}"
    if not months.value:
        best = "at best it does" if math.isinf(months.high) else f"at best until month {months.high:.0f}"
        return "does not fit today" if not months.high else f"does not fit today, {best}"
    ends = f"{months.low:.0f} or later" if math.isinf(months.high) else f"{months.low:.0f} to {months.high:.0f}"
    spread = "" if months.low == months.high else f" ({ends})"
    return f"fits until month {math.floor(months.value)}{spread}"


def _over_time(found: Forecast) -> Table:
    first = found.months[0]
    if not found.years and first.data_gib is None and found.reattach is not None:
        heads, rows = _after_outage(found.reattach)
    else:
        heads = ["Month", "busy hour", *(["one copy of the data"] if first.data_gib else [])]
        heads += ["fullest node"] if first.node_gib else []
        shown = [each for each in found.months if each.month % _PER_YEAR == 0 or each is found.months[-1]]
        rows = [
            [
                f"{each.month:g}",
                f"{_banded(each.busy_hour_per_s, rate)}/s",
                *(f"{_banded(gib)} GiB" for gib in (each.data_gib, each.node_gib) if gib is not None),
            ]
            for each in shown
        ]
    return table(heads, rows)


def _after_outage(storm: ReattachStorm) -> tuple[list[str], list[list[str]]]:
    """Return a table of intervals with constant rates; omit handshakes if there are none."""
    same = [list(each) for _, each in groupby(storm.over_time, lambda each: _rates(each.rates))]
    shown = same[:: max(math.ceil(len(same) / _TIMES), 1)]
    heads = ["After the outage", "auth", "acct"]
    rows = [[f"{each[0].from_s:g} to {each[-1].to_s:g} s", *_rates(each[0].rates)] for each in shown]
    if not any(each.rates.handshakes_per_s for each in storm.over_time):
        return heads, [row[:-1] for row in rows]
    return [*heads, "TLS handshakes"], rows


def _rates(rates: ClassRates) -> list[str]:
    return [per_second(each) for each in (rates.auth_per_s, rates.acct_per_s, rates.handshakes_per_s)]


def _assumptions(found: Forecast, explain: bool) -> Iterator[Block]:
    if explain:
        yield Bullets(tuple(f"{one.key} = {one.value}: {one.source}" for one in found.assumptions), marked=False)
        yield Break()
        return
    guessed = [f"{each.key} {each.value}" for each in found.assumptions if each.source == GUESS]
    sourced = [each.key for each in found.assumptions if each.source != GUESS]
    if guessed:
        yield Fact("Guessed", "; ".join(guessed))
    if sourced:
        yield Fact("Assumed", ", ".join(sourced))


def _count(number: float) -> str:
    return significant(number) if number >= 1000 else f"{number:g}"


def _banded(band: Band, form: Format = significant) -> str:
    return form(band.value) if band.low == band.high else f"{form(band.value)} ({to_ends(band)})"


def data_in_words(demand: Demand, scenario: Scenario) -> str:
    """Return in words a node's disk demand and how long its own disk is enough; empty without data or nodes."""
    nodes = scenario.cassandra_nodes()
    if demand.data is None or nodes is None:
        return ""
    found = volume(demand, demand.data)
    when = f" in {demand.years:g} years" if demand.years else ""
    words = f"{_banded(disk_gib_per_node(found, *nodes, demand.months))} GiB of disk per node{when}"
    if demand.data.disk_gib is None:
        return words
    disk_gib = float(demand.data.disk_gib)
    return f"{words}; {disk_gib:,.0f} GiB: {until(months_until(found, *nodes, disk_gib))}"
