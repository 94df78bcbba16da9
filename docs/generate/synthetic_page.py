"""The section of docs/backtest.md on systems with known parameters, from docs/reference/synthetic-systems.json."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from capplan.reports.backtest import in_words

RESULT = Path(__file__).resolve().parents[1] / "reference" / "synthetic-systems.json"
LOW, HIGH, MOST = 0.87, 0.93, 0.05
"""What 90 % bands should hold, and the median error of unseen figures: the targets."""
MODELLED, ALTERED = "as modelled", "misspecified"


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
    yield "\n".join(_targets(own))
    yield (
        "*Between systems* is the standard error of a share from the scatter between systems: figures of one system "
        "depend on each other, so the binomial error is too small. A parameter is decided if the rows remove half of "
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
        kinds = {name: each for name, each in found.items() if name != MODELLED}
        yield (
            f"{found[ALTERED]['systems']} more systems have something that the model has not: nodes work on twice as "
            "many requests at once, service times vary more (SCV 4), no request waits while a lane is free, one node "
            "has 70 % of the speed, or everything slows by up to 20 % from the first row to the last."
        )
        yield "\n".join(
            _table("systems", {f"{name} ({each['systems']})": each["figures"] for name, each in kinds.items()})
        )


def _verdicts(found: Mapping[str, Any]) -> str:
    yes, no = (f"{_percent(found[word]['right'])} of {found[word]['count']:,}" for word in ("yes", "no"))
    return (
        f"Asked whether a figure stays below bounds from half to twice its prediction "
        f"({found['questions']:,} questions), "
        f"the answer *yes* is right in {yes}, *no* in {no} (target: 90 %), and {_percent(found['uncertain'])} of the "
        "answers are *uncertain*."
    )


def _targets(own: Mapping[str, Any]) -> Iterator[str]:
    yield "| quantity | target | decided | between systems | binomial | all | met |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | --- |"
    for name, what in (("parameters", "parameters in their 90 % bands"), ("figures", "unseen figures in theirs")):
        yield _target(what, own[name], "held", "87 to 93 %", LOW, HIGH)
    yield _target("median error of unseen figures", own["figures"], "error", "under 5 %", 0.0, MOST)
    yield _target("the same, without scatter", own["figures"], "exact_error", "", 0.0, MOST)
    yield _target("the error of a repeat of the row", own["figures"], "repeat_error", "", 0.0, MOST)
    for name, what in (("parameters", "median half-width of parameters"), ("figures", "of unseen figures")):
        yield _target(what, own[name], "half_width", "", 0.0, 0.0)


def _target(what: str, split: Mapping[str, Any], key: str, target: str, low: float, high: float) -> str:
    decided, every = split["decided"], split["all"]
    if not decided["count"]:
        return f"| {what} | {target} | - | | | {_of(every, key)} | |"
    held = key == "held"
    errors = [_percent(decided[name]) if held else "" for name in ("error_between_systems", "binomial_error")]
    met = ("yes" if low <= decided[key] <= high else "**no**") if target else ""
    return f"| {what} | {target} | {_of(decided, key)} | {errors[0]} | {errors[1]} | {_of(every, key)} | {met} |"


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
