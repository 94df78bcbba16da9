"""Single requests of the compiled engine: rows of the kernel's buffer, and those of requests that have not ended."""

from __future__ import annotations

import numpy as np

from capplan.simulator.compiled.kernel.layout import Ints, Program, Records, State
from capplan.simulator.results.run import Requests, Status

COLUMNS = 10  # of the kernel's buffer: the number, then the fields of `Requests`


def unfinished(program: Program, state: State) -> list[tuple[Records, int]]:
    """Return the sessions whose request has not ended, each with the number of its class."""
    live = state.talks[state.talks["open"] > 0]
    places = program.sources["classes"][live["source"]] + live["place"]
    return list(zip(live, program.table[places].tolist(), strict=True))


def unfinished_rows(program: Program, state: State) -> Ints:
    """Return rows of the requests that have not ended, like those of the kernel's buffer."""
    rows = [
        [
            *(talk["row"], talk["source"], number, talk["unit"], talk["first"] + talk["place"], talk["attempt"] + 1),
            *(talk["intended"], talk["start"], -1, Status.UNFINISHED),
        ]
        for talk, number in unfinished(program, state)
    ]
    return np.array(rows, dtype=np.int64).reshape(-1, COLUMNS)


def joined(parts: list[Ints]) -> Requests:
    """Return all requests, in the order of starting."""
    rows = np.concatenate([np.zeros((0, COLUMNS), dtype=np.int64), *parts])
    return requests_of(rows[np.argsort(rows[:, 0])])


def requests_of(rows: Ints) -> Requests:
    """Return rows as requests, in the same order."""
    return Requests(
        source=rows[:, 1],
        request_class=rows[:, 2],
        session=rows[:, 3],
        position=rows[:, 4],
        attempts=rows[:, 5],
        intended_ticks=rows[:, 6],
        start_ticks=rows[:, 7],
        end_ticks=rows[:, 8],
        status=rows[:, 9],
    )
