"""Measure capplan's speed beside its peers': `just bench`, or `just bench --quick` for less than a minute."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import experiments
import growth
import precision
import sizing
import sweeps
import verbs
from contenders import QUICK_PARTS, SECTIONS, lengths
from machine import description
from measure import once, section
from report import as_page, as_text

SCHEMA = "capplan.bench/1"
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "speed.md"
PARTS = (*SECTIONS, "precision", "lengths", "experiments", "sweeps", "growth", "sizing", "verbs")


def main() -> int:
    """Measure, print, and write what was asked for; 1 when some contender gave a wrong answer or none."""
    options = _options()
    mode = "quick" if options.quick else "full" if options.full else "normal"
    rounds = 1 if options.quick else options.rounds
    parts = options.only or (QUICK_PARTS if options.quick else PARTS)
    kept = json.loads(options.keep.read_text("utf-8")) if options.keep else {"sections": {}}
    found: dict[str, Any] = {**kept, "schema": SCHEMA, "machine": description(), "mode": mode, "rounds": rounds}
    measured: dict[str, Callable[[], Any]] = {
        "precision": lambda: {name: precision.contest(name, mode, rounds) for name in precision.TITLES},
        "lengths": lambda: [_length(each) for each in lengths(mode)],
        "experiments": lambda: experiments.measured(mode),
        "sweeps": lambda: sweeps.measured(mode, rounds),
        "growth": lambda: growth.measured(mode),
        "sizing": lambda: sizing.measured(mode, rounds),
        "verbs": lambda: verbs.measured(mode, rounds),
    }
    for name in (each for each in PARTS if each in parts):
        if name in SECTIONS:
            found["sections"][name] = section(name, mode, rounds)
        else:
            found[name] = measured[name]()
        if options.json:  # after an interruption, `--keep FILE --only PART ...` measures the rest
            options.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    print(as_text(found))
    faults = _faults(found)
    for text in faults:
        print(f"not counted: {text}", file=sys.stderr)
    if _whole(found) and not faults:  # what somebody reads is whole, or stays as it was
        PAGE.write_text(as_page(found), "utf-8")
        verbs.keep(found["verbs"])
    return 1 if faults else 0


def _whole(found: dict[str, Any]) -> bool:
    """Whether every part was measured, now or in the run that is kept, both as thoroughly."""
    measured = {*found["sections"], *found}
    return found["mode"] != "quick" and measured.issuperset(PARTS)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="just bench", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="fewer requests and one round: a look, not a measurement")
    size.add_argument("--full", action="store_true", help="also the long runs that take minutes each")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each contest (default: 3)")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="some parts of it")
    parser.add_argument("--keep", type=Path, help="take the other parts from such a file of an earlier run here")
    parser.add_argument("--json", type=Path, help="write everything that was measured to this file")
    return parser.parse_args()


def _length(contender: Any) -> dict[str, Any]:
    found = once(contender, contender.requests, seed=1)
    return {**found, "label": contender.label, "asked": contender.requests}


def _faults(found: dict[str, Any]) -> list[str]:
    """List what is wrong with all that was measured."""
    contests = [
        *found["sections"].values(),
        *found.get("precision", {}).values(),
        found.get("sweeps", []),
        found.get("growth", []),
        found.get("sizing", []),
        found.get("verbs", {}).get("rows", []),
    ]
    rows = [row for rows in contests for row in rows]
    texts = [f"{row['label']}: {text}" for row in rows for text in row.get("wrong", ())]
    others = [*found.get("lengths", ()), found.get("experiments", {})]
    return texts + [row["failed"] for row in others if "failed" in row]


if __name__ == "__main__":
    raise SystemExit(main())
