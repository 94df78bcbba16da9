"""What a sizing costs against the number of layouts to choose from and their size: whole commands."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from measure import Answer

TITLE = "Sizing"
NOTE = (
    "`capplan size openprovider --survive dc,node` from the start of the command to its last line, by all processors. "
    "Solver only: `--engine analytic`; confirmed: the best layout of each family is simulated, and the search repeated "
    "with its latencies."
)
CAPPLAN = Path(sys.executable).with_name("capplan")
ENGINES = {"analytic": "solver only, s", "compiled": "confirmed, s"}


@dataclass(frozen=True)
class Space:
    """A rate, the layouts to choose from, and options besides with what they are called."""

    tps: int
    dcs: str
    nodes: str
    fronts: str
    more: tuple[str, ...] = ()
    called: str = ""

    @property
    def label(self) -> str:
        """Name in the table."""
        return f"{self.tps:,} TPS, {self.dcs} DCs, {self.nodes} nodes, {self.fronts} fronts{self.called}"

    @property
    def options(self) -> tuple[str, ...]:
        """Arguments of the command."""
        space = ("--dcs", self.dcs, "--cass-nodes", self.nodes, "--front-nodes", self.fronts)
        return ("--tps", str(self.tps), "--slo", "acct.p99<60ms", "--survive", "dc,node", *space, *self.more)


LOCAL_WRITES = ("--consistency-write", "LOCAL_QUORUM")  # two data centres survive a loss only with these
SPACES = (
    Space(15_000, "3", "3..30", "1..4"),
    Space(15_000, "1..4", "3..30", "1..9"),
    Space(2_000_000, "2", "3..100", "1..25", (*LOCAL_WRITES, "--cells", "100,200"), ", 100 or 200 cells"),
)


def measured(mode: str, rounds: int) -> list[Answer]:
    """Time all spaces and return a row for each; once, because a sizing is long enough for the noise to even out."""
    del rounds
    return [_row(space) for space in (SPACES[:1] if mode == "quick" else SPACES)]


def _row(space: Space) -> Answer:
    row: Answer = {"label": space.label}
    found = {engine: _once(space, engine) for engine in ENGINES}
    wrong = [answer["failed"] for answer in found.values() if "failed" in answer]
    if wrong:
        return {**row, "wrong": wrong}
    seconds = {engine: answer["seconds"] for engine, answer in found.items()}
    return {**row, **seconds, "layouts": found["analytic"]["layouts"], "solved": found["analytic"]["solved"]}


def _once(space: Space, engine: str) -> Answer:
    print(f"  size, {engine}: {space.label}", file=sys.stderr, flush=True)
    command = [str(CAPPLAN), "size", "openprovider", *space.options, "--engine", engine, "--json"]
    start = time.perf_counter()
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if process.returncode not in {0, 1} or not process.stdout:  # 1 answers "uncertain" or "no"
        return {"failed": (process.stderr.strip().splitlines() or ["no layout is safe enough"])[-1]}
    answer = json.loads(process.stdout)
    return {"seconds": seconds, "layouts": answer["layouts"], "solved": answer["solved"]}


def tables(found: list[Answer] | None) -> Iterator[tuple[str, str, list[list[str]]]]:
    """Yield title, note and cells."""
    if found:
        yield TITLE, NOTE, [["", "layouts", "solved", *ENGINES.values()], *(_cells(row) for row in found)]


def _cells(row: Answer) -> list[str]:
    if "wrong" in row:
        return [row["label"], "not counted: " + row["wrong"][0], "", "", ""]
    seconds = [f"{row[engine]:.1f}" for engine in ENGINES]
    return [row["label"], f"{row['layouts']:,}", f"{row['solved']:,}", *seconds]
