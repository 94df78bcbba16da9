"""A saved answer for people: whether its claims still hold, and whether recomputing it gives the same figures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from capplan.planner.drift import Drift
from capplan.planner.proposal.verify import Verification
from capplan.reports.document import Block, Break, Bullets, Fact, Heading, Paragraph
from capplan.reports.numbers import many

SHOWN = 12
"""Figures that are named on the screen; --json names all."""
_MARKS = {"worse": "WORSE", "better": "better", "held": "held", "untested": "untested"}


def drift(found: Drift) -> Iterator[Block]:
    """Yield which claims of an answer hold against later measurements."""
    yield Heading(f"{found.system}: {found.layout}", 1)
    yield Break()
    tested = [each for each in found.claims if each.status != "untested"]
    for each in sorted(tested, key=lambda each: list(_MARKS).index(each.status)):
        yield Fact(_MARKS[each.status], each.sentence)
    yield Break()
    worse = sum(each.status == "worse" for each in tested)
    yield Paragraph(
        f"{worse} of {len(tested)} tested claims {'is' if worse == 1 else 'are'} worse than the answer says; "
        f"{len(found.claims) - len(tested)} untested."
    )
    for count, why in (
        (found.rows_refused, "refused by the audit"),
        (found.rows_of_other_layouts, "of another layout or number of clients"),
    ):
        if count:
            yield Paragraph(f"{many(count, 'row')} {why}, and left out.")


def verification(found: Verification, file: Path) -> Iterator[Block]:
    """Yield which figures of a proposal differ after recomputing it."""
    if found.verified:
        yield Paragraph(f"{file}: verified. All {found.figures} values are what this version computes.")
        return
    yield Heading(f"{file}: not verified", 1)
    changed = ["The file was changed after it was written: its digest does not match."] * (not found.intact)
    for each in found.origins:
        made = f"it was made with {_short(each.stored)}, here is {_short(each.computed)}"
        changed.append(f"Another {each.figure}: {made}.")
    yield Bullets(tuple(changed))
    if not found.changes:
        yield Paragraph(f"All {found.figures} values are the same all the same.")
        return
    yield Break()
    yield Paragraph(f"{len(found.changes)} of {found.figures} values differ:")
    changes = found.changes[:SHOWN]
    yield Bullets(
        tuple(f"{one.figure}: {_short(one.stored)} in the file, {_short(one.computed)} now" for one in changes)
    )
    if len(found.changes) > SHOWN:
        yield Paragraph(f"and {len(found.changes) - SHOWN} more: --json names all")


def _short(value: Any) -> str:
    if isinstance(value, dict | list):
        return f"{len(value)} values"
    text = f"{value:.4g}" if isinstance(value, float) else "nothing" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
