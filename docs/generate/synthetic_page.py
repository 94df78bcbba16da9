"""The section of docs/backtest.md on systems with known parameters, from docs/reference/synthetic-systems.json."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from capplan.reports.backtest import in_words

RESULT = Path(__file__).resolve().parents[1] / "reference" / "synthetic-systems.json"
WIDEST, FEWEST, MOST = 0.04, 0.85, 0.05
"""Targets: half of the interval of a share, what 90 % bands hold of misspecified systems, the median error of unseen
figures without scatter."""
MODELLED, ALTERED, PAUSED = "as modelled", "misspecified", "pauses of"
PERCENTILES = "latency_p50_ms", "latency_p95_ms", "latency_p99_ms"


def synthetic() -> str:
    """Return the section; without results, how to make them."""
    if not RESULT.exists():
        return "These systems have not been measured yet."
    found: Mapping[str, Any] = json.loads(RESULT.read_text(encoding="utf-8"))
    return "\n\n".join(part if part.startswith("|") else textwrap.fill(part, 120) for part in section(found))


def section(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parts of the section."""
    own = found[MODELLED]
    least, most = own["rows"]
    yield f"{own['systems']} systems as modelled, each fitted to {least} to {most} rows:"
    yield "\n".join(_levels(own["groups"]))
    yield (
        "A level is met if its 90 % interval contains it and is at most 4 points to each side. Intervals are by system "
        "(Korn and Graubard), for figures of one system depend on each other."
    )
    yield "\n".join(_targets(own, found.get(ALTERED)))
    yield (
        "A parameter is decided if the rows remove half of "
        "the width of its prior. An error is relative to the row as it was measured; *without scatter* is that to the "
        "run of the engine. No prediction can be nearer to a row than a repeat of it is. A half-width is that of the "
        "logarithm of a band."
    )
    rows = {in_words(name): each for name, each in own["quantities"].items()}
    rows |= {"fitted layouts, more load": own["layouts"]["fitted"], "other layouts": own["layouts"]["other"]}
    yield "\n".join(_table("unseen figures", rows))
    if "verdicts" in own:
        yield _verdicts(own["verdicts"])
    if ALTERED in found:
        kinds = {name: each for name, each in found.items() if name != MODELLED and not name.startswith(PAUSED)}
        yield (
            f"{found[ALTERED]['systems']} more systems have something that the model has not: nodes work on twice as "
            "many requests at once, service times vary more (SCV 4), no request waits while a lane is free, one node "
            "has 70 % of the speed, or everything slows by up to 20 % from the first row to the last."
        )
        yield "\n".join(
            _table("systems", {f"{name} ({each['systems']})": each["figures"] for name, each in kinds.items()})
        )
    paused = {name: each for name, each in found.items() if name.startswith(PAUSED)}
    if paused:
        yield (
            f"{sum(each['systems'] for each in paused.values())} more clusters stop for 20, 60 or 300 ms in the mean. "
            "10 to 1,000 closed clients test them, and what open ones would see at 30, 50 and 80 % of the capacity is "
            "predicted:"
        )
        rows = {
            f"{in_words(quantity)}, {name}": each["quantities"][quantity]
            for quantity in PERCENTILES
            for name, each in paused.items()
        }
        yield "\n".join(_table("open clients", rows))


def _verdicts(found: Mapping[str, Any]) -> str:
    yes, no = (f"{_percent(found[word]['right'])} of {found[word]['count']:,}" for word in ("yes", "no"))
    return (
        f"Asked whether a figure stays below bounds from half to twice its prediction "
        f"({found['questions']:,} questions), "
        f"the answer *yes* is right in {yes}, *no* in {no} (target: 90 %), and {_percent(found['uncertain'])} of the "
        "answers are *uncertain*."
    )


def _levels(groups: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table of what bands of each level hold of decided parameters and figures, by group of systems."""
    yield "| systems | level | parameters | interval | met | unseen figures | interval | met |"
    yield "| --- | ---: | ---: | ---: | --- | ---: | ---: | --- |"
    for name, own in groups.items():
        both = [{level: held for level, *held in own[what]} for what in ("parameters", "figures")]
        for at, level in enumerate(dict.fromkeys([*both[0], *both[1]])):
            cells = [f"{name} ({own['systems']})" if not at else "", f"{level:.0%}"]
            cells += [cell for each in both for cell in (_level_cells(level, *each[level]) if level in each else "---")]
            yield "| " + " | ".join(cells) + " |"


def _level_cells(level: float, held: float, low: float, high: float) -> tuple[str, str, str]:
    met = low <= level <= high and max(held - low, high - held) <= WIDEST
    return _percent(held), f"{100 * low:.0f} to {100 * high:.0f} %", _met(met)


def _targets(own: Mapping[str, Any], altered: Mapping[str, Any] | None) -> Iterator[str]:
    yield "| quantity | target | decided | all | met |"
    yield "| --- | --- | ---: | ---: | --- |"
    if altered:
        yield _target("misspecified: figures in their 90 % bands", altered["figures"], "held", "at least 85 %", FEWEST)
    yield _target("median error of unseen figures without scatter", own["figures"], "exact_error", "at most 5 %", MOST)
    yield _target("the same, with scatter", own["figures"], "error")
    yield _target("the error of a repeat of the row", own["figures"], "repeat_error")
    for name, what in (("parameters", "median half-width of parameters"), ("figures", "of unseen figures")):
        yield _target(what, own[name], "half_width")


def _target(what: str, split: Mapping[str, Any], key: str, target: str = "", limit: float = 0.0) -> str:
    decided, every = split["decided"], split["all"]
    if not decided["count"]:
        return f"| {what} | {target} | - | {_of(every, key)} | |"
    right = decided[key] >= limit if key == "held" else decided[key] <= limit
    return f"| {what} | {target} | {_of(decided, key)} | {_of(every, key)} | {_met(right) if target else ''} |"


def _met(right: bool) -> str:
    return "yes" if right else "**no**"


def _of(scores: Mapping[str, Any], key: str) -> str:
    if not scores["count"]:
        return "-"
    return _percent(scores[key]) + (f" of {scores['count']:,}" if key == "held" else "")


def _table(first: str, rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    pairs = (f"{name}, {which}" for name in ("bands hold", "error", "half-width") for which in ("decided", "all"))
    yield f"| {first} | " + " | ".join(pairs) + " |"
    yield "| --- |" + " ---: |" * 6
    for name, split in rows.items():
        cells = [_of(split[which], key) for key in ("held", "error", "half_width") for which in ("decided", "all")]
        yield "| " + " | ".join([name, *cells]) + " |"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
