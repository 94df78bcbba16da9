"""What of a program hangs on the parameter draw: laws, the lengths of fixed waits, and rates of open traffic.

All else of a network is the same in every draw, so its flows are lowered once, whatever the number of draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from capplan.models.language.distribution import Deterministic, Distribution
from capplan.models.language.draws import as_key, at_draw
from capplan.simulator.compiled.kernel import layout as at
from capplan.simulator.compiled.kernel.layout import Ints, Records
from capplan.simulator.specification.clock import to_ticks
from capplan.simulator.specification.sampling import FlatLaws, LawKind, flatten

MOST_WAIT_LISTS = 16


@dataclass(frozen=True, eq=False)
class FixedWaits:
    """Where instructions wait for a fixed time.

    Attributes
    ----------
    rows, places
        By wait, its instruction, and the place of its ticks in the table.
    which
        By wait, which of `lengths` it takes.
    lengths
        Different lengths, in the order in which they come first.
    """

    rows: Ints
    places: Ints
    which: Ints
    lengths: tuple[Deterministic, ...]

    def in_code(self, code: Records, lists: Ints) -> Records:
        """Return the code with the list of each length; the same object when nothing changes, since it is large."""
        wanted = lists[self.which]
        if np.array_equal(code["b"][self.rows], wanted):
            return code
        changed = code.copy()
        changed["b"][self.rows] = wanted
        return changed

    def in_table(self, table: Ints, ticks: Ints) -> Ints:
        """Return the table with the ticks of each length."""
        changed = table.copy()
        changed[self.places] = ticks[self.which]
        return changed


@dataclass(frozen=True, eq=False)
class Numbers:
    """The laws and fixed waits of a program, whose numbers may be arrays over draws.

    Attributes
    ----------
    laws
        Different laws, in the order of their numbers in the code.
    waits
        The fixed waits.
    before
        How many numbers stand in a program before those of its laws.
    """

    laws: tuple[Distribution, ...]
    waits: FixedWaits
    before: int

    def flat(self, draw: int) -> FlatLaws:
        """Return the laws of one draw as arrays."""
        return flatten([at_draw(law, draw) for law in self.laws])

    def law_records(self, flat: FlatLaws) -> Records:
        """Return the laws as the kernel reads them."""
        rows = np.zeros(len(flat.kind), dtype=at.LAW)
        rows["kind"], rows["count"], rows["scale"] = flat.kind, flat.count, flat.scale
        rows["ticks"] = np.where(flat.kind == LawKind.MIXTURE, flat.first_part, flat.ticks)
        tables = flat.kind == LawKind.TABLE
        rows["ticks"][tables] = np.log2(flat.count[tables])  # pieces of an octave: a power of two
        rows["first"] = flat.first + self.before
        return rows

    def wait_lists(self, draw: int) -> tuple[Ints, Ints]:
        """Return, by length of a fixed wait, its ticks in one draw, and the number of the list of waits of that length.

        Where there are too many kinds, the rest have no list (-1).
        """
        lists: dict[int, int] = {}
        ticks = [to_ticks(float(at_draw(length, draw).value_s)) for length in self.waits.lengths]
        for length in ticks:
            if len(lists) < MOST_WAIT_LISTS:
                lists.setdefault(length, len(lists))
        mine = [lists.get(length, at.NONE) for length in ticks]
        return np.array(ticks, dtype=np.int64), np.array(mine, dtype=np.int64)


def fixed_waits(found: Sequence[tuple[int, int, Deterministic]]) -> FixedWaits:
    """Take fixed waits together: of each, its instruction, the place of its ticks in the table, and its length."""
    numbers: dict[object, int] = {}
    which = [numbers.setdefault(as_key(length), len(numbers)) for _, _, length in found]
    first = {number: length for number, (_, _, length) in reversed(list(zip(which, found, strict=True)))}
    rows, places = (np.array([wait[column] for wait in found], dtype=np.int64) for column in (0, 1))
    return FixedWaits(
        rows, places, np.array(which, dtype=np.int64), tuple(first[number] for number in range(len(first)))
    )
