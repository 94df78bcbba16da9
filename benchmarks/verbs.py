"""What each verb costs in CPU seconds and as a multiple of an import, by part; what an answer costs when warm."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from measure import Answer
from profiled import NAMES

TITLE, WARM_TITLE = "What a command costs", "What an answer costs in a process that is warm"
NOTE = (
    "CPU seconds of whole commands with an empty cache, children included: the median of {rounds}, beside the multiple "
    "of `import numpy, scipy.special` ({import_s:.2f} s), which depends less on the machine, and the multiple at the "
    "last measurement that was kept ([verb-costs.csv](verb-costs.csv)). The other columns are where the time goes, by "
    "samples of the stack."
)
WARM_NOTE = (
    "The analytic solver, after an answer about another layout: the median of seven. `figures` are the latencies of "
    "all draws at a rate, `predict` is the whole answer, `what-if` what a slider waits for."
)
ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "reference" / "verb-costs.csv"
IMPORT = "import numpy, scipy.special"
DEFAULT = "--dcs", "3", "--cass-nodes", "6"
SMALL, LARGE = "tests/published/load_tests/cassandra_azure_rf_cl_reads_mixed.csv", "docs/live/measured.csv"
SIZED = "--tps", "20000", "--slo", "acct.p99<20ms", "--survive", "dc"
COMMANDS = {
    "predict --help": ("predict", "--help"),
    "predict": ("predict", *DEFAULT),
    "predict --engine analytic": ("predict", *DEFAULT, "--engine", "analytic"),
    "simulate": ("simulate",),
    "outages --lose node": ("outages", "--lose", "node"),
    "size": ("size", *SIZED),
    "proposal": ("proposal", *SIZED, "--customer", "Example", "-o", "{folder}/proposal.html"),
    "calibrate, 14 rows": ("calibrate", "cassandra", "--evidence", SMALL, "-o", "{folder}/small.json"),
    "backtest, 14 rows": ("backtest", "cassandra", SMALL, "--train", "rf <= 3"),
    "calibrate, 80 rows": ("calibrate", "cassandra", "--evidence", LARGE, "-o", "{folder}/large.json"),
}
QUICK = "predict --help", "predict --engine analytic"
WARM = {
    "figures": "resolve(capplan.scenario(cass_nodes={n}), None, 1).solution.at(6000).latencies_s('acct')",
    "predict": "capplan.predict(capplan.scenario(cass_nodes={n}), engine='analytic')",
    "what-if": "capplan.what_if(capplan.scenario(cass_nodes={n}, tps=6000), 'acct.p99')",
}


def measured(mode: str, rounds: int) -> Answer:
    """Measure all commands in turns."""
    labels = QUICK if mode == "quick" else tuple(COMMANDS)
    with tempfile.TemporaryDirectory() as folder:
        imports = [_imported_s() for _ in range(rounds)]
        runs = [{label: _once(label, folder) for label in labels} for _ in range(rounds)]
    rows = [_row(label, [run[label] for run in runs]) for label in labels]
    return {"import_s": median(imports), "rounds": rounds, "before": _kept(), "rows": rows, "warm": _warm()}


def keep(found: Answer) -> None:
    """Write the multiples that the next measurement is compared with."""
    with KEPT.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("command", "times_import"))
        table.writerows((row["label"], f"{row['cpu_s'] / found['import_s']:.1f}") for row in found["rows"])


def _kept() -> dict[str, str]:
    if not KEPT.is_file():
        return {}
    with KEPT.open(encoding="utf-8", newline="") as file:
        return {row["command"]: row["times_import"] for row in csv.DictReader(file)}


def _imported_s() -> float:
    timed = f"import time; {IMPORT}; print(time.process_time())"
    return float(subprocess.check_output([sys.executable, "-c", timed], env=_environment(""), text=True))


def _environment(cache: str) -> dict[str, str]:
    without = {"PYTHONDONTWRITEBYTECODE"}  # an installed capplan has its bytecode
    found = {name: value for name, value in os.environ.items() if name not in without}
    return found | {"OPENBLAS_NUM_THREADS": "1"} | ({"CAPPLAN_CACHE_DIR": cache} if cache else {})


def _once(label: str, folder: str) -> Answer:
    print(f"  {label}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=folder) as cache:
        arguments = [each.format(folder=folder) for each in COMMANDS[label]]
        command = [sys.executable, str(Path(__file__).with_name("profiled.py")), *arguments]
        ended = subprocess.run(command, cwd=ROOT, env=_environment(cache), capture_output=True, text=True, check=False)
    try:
        found: Answer = json.loads(ended.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return {"failed": (ended.stderr.strip().splitlines() or ["it ended without a word"])[-1]}
    return found if found["code"] in {0, 1} else {"failed": f"it ended with {found['code']}"}


def _row(label: str, answers: list[Answer]) -> Answer:
    wrong = [answer["failed"] for answer in answers if "failed" in answer]
    if wrong:
        return {"label": label, "wrong": wrong}
    parts = {name: median(answer["parts_s"][name] for answer in answers) for name in NAMES}
    return {"label": label, "cpu_s": median(answer["cpu_s"] for answer in answers), "parts_s": parts}


def _warm() -> dict[str, float]:
    code = (
        "import json, statistics, time, capplan\n"
        "from capplan.systems.registry import resolve\n"
        "def cpu(ask, n):\n start = time.process_time(); ask(n); return time.process_time() - start\n"
        "asks = {{{asks}}}\n"
        "found = {{name: statistics.median([cpu(ask, n) for n in range(4, 12)][1:]) for name, ask in asks.items()}}\n"
        "print(json.dumps(found))"
    )
    asks = ", ".join(f"{name!r}: lambda n: {ask.format(n='n')}" for name, ask in WARM.items())
    found: dict[str, float] = json.loads(
        subprocess.check_output([sys.executable, "-c", code.format(asks=asks)], env=_environment(""), text=True)
    )
    return found


def tables(found: Answer | None) -> Iterator[tuple[str, str, list[list[str]]]]:
    """Yield title, note and cells."""
    if not found:
        return
    head = ["", "CPU s", "x import", "before", *NAMES]
    yield TITLE, NOTE.format(**found), [head, *(_cells(row, found) for row in found["rows"])]
    yield WARM_TITLE, WARM_NOTE, [["", "CPU ms"], *([name, f"{1e3 * s:.0f}"] for name, s in found["warm"].items())]


def _cells(row: Answer, found: Answer) -> list[str]:
    if "wrong" in row:
        return [row["label"], "not counted: " + row["wrong"][0], "", "", *("" for _ in NAMES)]
    times = f"{row['cpu_s'] / found['import_s']:.1f}"
    parts = (f"{row['parts_s'][name]:.2f}" for name in NAMES)
    return [row["label"], f"{row['cpu_s']:.2f}", times, found["before"].get(row["label"], ""), *parts]
