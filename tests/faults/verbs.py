"""Verbs that write, as a table: a line adds one to the harness."""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.planner.valid_questions import folder

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
LAYOUT, OTHER = EXAMPLES / "three-dcs-of-six.toml", EXAMPLES / "three-dcs-of-six-local.toml"
OBJECTIVES, DEMAND = EXAMPLES / "objectives.toml", EXAMPLES / "demand.toml"
MEASURED = EXAMPLES / "measured-later.csv"
OWN, CORPUS = EXAMPLES / "own-measurements" / "three-rows.csv", Path(__file__).parents[1] / "fuzz" / "corpus"


@dataclass(frozen=True)
class WritingVerb:
    """A command line that writes files.

    Attributes
    ----------
    command : str
        The command line; names of files are in its folder.
    files : tuple of str
        What it writes.
    resumes : str
        Pattern of what it keeps beside the result while it runs, and after an interruption; empty if it keeps nothing.
    cached : str
        Pattern of what it keeps in the user's cache; empty if it keeps nothing.
    code : int
        Its exit code where nothing is in the way.
    slow : bool
        Whether it takes so long that it gets few faults.
    same : callable
        What two runs have in common of a file's content; all of it if they measure nothing.
    """

    command: str
    files: tuple[str, ...]
    resumes: str = ""
    cached: str = ""
    code: int = 0
    slow: bool = False
    same: Callable[[bytes], object] = bytes


VERBS = {
    "predict --plot": WritingVerb("predict fedora4 --engine analytic --plot plot.html", ("plot.html",)),
    "simulate --trace": WritingVerb(
        "simulate fedora4 --tps 200 --duration 20s --warmup 2s --trace trace.parquet", ("trace.parquet",)
    ),
    "simulate --trace (CSV)": WritingVerb(
        "simulate fedora4 --tps 200 --duration 20s --warmup 2s --trace trace.csv", ("trace.csv",)
    ),
    "simulate --plot": WritingVerb("simulate fedora4 --tps 100 --duration 5s --plot plot.html", ("plot.html",)),
    "sweep --out": WritingVerb(
        "sweep fedora4 --draws 2 --processes 1 --node-cores 4,8 --load 20%..90%:10% --out sweep.csv",
        ("sweep.csv",),
        resumes="sweep.csv.runs*",
    ),
    "sweep --out (Parquet, two processes)": WritingVerb(
        "sweep fedora4 --draws 2 --processes 2 --node-cores 2..8:2 --load 20%..90%:10% --out sweep.parquet",
        ("sweep.parquet",),
        resumes="sweep.parquet.runs*",
    ),
    "sweep --plot": WritingVerb(
        "sweep fedora4 --draws 2 --processes 1 --node-cores 4,8 --plot plot.html", ("plot.html",)
    ),
    "size --plot": WritingVerb(
        "size fedora4 --engine analytic --tps 500 --processes 1 --plot plot.html", ("plot.html",)
    ),
    "proposal --out": WritingVerb(
        "proposal fedora4 --engine analytic --tps 500 --processes 1 --customer X -o one.json -o two.html -o three.pdf",
        ("one.json", "two.html", "three.pdf"),
        slow=True,
    ),
    "check --junit": WritingVerb(
        f"check {EXAMPLES / 'objectives.toml'} --engine analytic --junit out.xml", ("out.xml",), code=1
    ),
    "outages --plot": WritingVerb(
        "outages --engine analytic --lose node --at 16s --for 1s --after 16s --budget 100ms --plot plot.html",
        ("plot.html",),
        slow=True,
    ),
    "evidence import": WritingVerb(f"evidence import {MEASURED} -o table.parquet", ("table.parquet",)),
    "evidence import (CSV)": WritingVerb(f"evidence import {MEASURED} -o table.csv", ("table.csv",)),
    "evidence plot": WritingVerb(f"evidence plot {MEASURED} --plot plot.html", ("plot.html",)),
    "validate --report": WritingVerb(
        "validate vcider --report .", ("validation.md", "validation.html"), cached="*.stages", slow=True
    ),
    "collect --out": WritingVerb(
        "collect grpc --duration 200ms -o table.csv",
        ("table.microbench.csv",),
        slow=True,
        same=lambda content: (content[-1:], {len(row) for row in csv.reader(content.decode().splitlines())}),
    ),
    "calibrate --evidence": WritingVerb(
        f"calibrate cassandra --evidence {OWN} --output fitted.json", ("fitted.json",), slow=True
    ),
    "calibrate --output": WritingVerb(
        "calibrate arion --output fitted.json", ("fitted.json",), resumes="fitted.json.*.stages*", slow=True
    ),
}
PRINTING = (  # verbs that only write to stdout
    "predict fedora4 --engine analytic --json",
    f"drift {CORPUS / 'answer.json'} {MEASURED}",
    f"next-test {folder() / 'etcd.json'} --candidates 'clients=4,8'",
    f"verify {EXAMPLES / 'proposal-20000-tps.json'} --processes 1",
    f"evidence audit {OWN} --csv",
    f"compare {LAYOUT} {OTHER} --engine analytic",
    f"demand {DEMAND}",
    "collect --json",
    "evidence list arion",
    "systems --csv",
)
