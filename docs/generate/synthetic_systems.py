"""Fit systems whose parameters are known, and count how often bands hold: docs/reference/synthetic-systems.json.

`uv run just synthetic` draws 200 systems from the priors, and 50 more that have something which the model has not. The
engine measures 12 to 20 rows of each; the fit sees these, with scatter, and predicts rows beyond them. Closed clients
test 60 more, whose pauses take 20, 60 or 300 ms, and open ones are predicted. That takes 40 minutes on two cores. It
resumes if it is interrupted: each finished system is a line of a file in the user's cache, whose name has a digest of
the code. `--systems 8 --altered 2 --paused 0` does fewer, and writes no summary unless `--write` says so. Seeds are
fixed, so results repeat.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from synthetic_page import RESULT
from synthetic_truth import ALTERATIONS, PAUSES_S, PERCENTILES, Measured, Truth, drawn, estimated, measured

from capplan.answers.verdict import answer
from capplan.calibration import tables as fit_tables
from capplan.calibration.fit.stages import refit_code
from capplan.calibration.tables.bias import Outcome, held_bands, place
from capplan.calibration.tables.fit_table import fit_table
from capplan.calibration.tables.identifiability import decided
from capplan.calibration.tables.row_predictions import predict_table
from capplan.files import replace_file, user_cache
from capplan.layout.fitted_file import Fitted
from capplan.layout.table_rows import MEAN, THROUGHPUT
from capplan.systems.registry import table_system

HERE = Path(__file__).resolve().parent
TABLES = Path(fit_tables.__file__).parent
SYSTEMS, ALTERED, PAUSED = 200, 50, 60
BOUNDS = 21  # objectives about each figure
QUANTITIES = (THROUGHPUT, MEAN, *PERCENTILES)
DECIDED = 0.5  # share of a prior's width that the rows must have removed, so that they decide a parameter
LEVELS = (0.5, 0.8, 0.9)
GROUPS = ("open", "closed", "cassandra", "two-tier")
_TOUCHED = 0.02  # the same, so that a parameter had any effect on the rows
Record = dict[str, Any]


def jobs(systems: int = SYSTEMS, altered: int = ALTERED, paused: int = PAUSED) -> list[tuple[int, str]]:
    """Return the number of each system, and what it has that the model has not, or how long it pauses."""
    usual = [(at, "") for at in range(systems)]
    others = ((1000, list(ALTERATIONS), altered), (2000, list(PAUSES_S), paused))
    return usual + [(first + at, kinds[at % len(kinds)]) for first, kinds, count in others for at in range(count)]


def outcome(job: tuple[int, str]) -> Record:
    """Draw a system, measure it, fit it, and find the place of every parameter and unseen figure in its prediction."""
    began = time.process_time()
    truth = drawn(*job)
    trained, unseen = measured(truth)
    simulated = time.process_time()
    fitted = fit_table(truth.of, [each.row for each in trained], seed=truth.number + 1)
    return {
        "number": truth.number,
        "system": truth.system,
        "altered": truth.altered,
        "design": truth.design,
        "load": truth.trained[0].load_kind,
        "rows": len(trained),
        "parameters": scored_parameters(truth, fitted),
        "figures": scored_figures(truth, fitted, unseen),
        "simulated_s": round(simulated - began, 2),
        "fitted_s": round(time.process_time() - simulated, 2),
    }


def scored_parameters(truth: Truth, fitted: Fitted) -> list[Record]:
    """Return the parameters on which some row depends: how far the rows decide them, and whether the band holds."""
    known, names, values = decided(fitted), estimated(truth.of), truth.fitted_values
    found = []
    for at, name in enumerate(fitted.names):
        if name in names and known.get(name, 0.0) > _TOUCHED:
            draws = np.array([draw[at] for draw in fitted.draws])
            low, high = np.quantile(draws, (0.05, 0.95)).tolist()
            found.append(
                {
                    "name": name,
                    "decided": round(known[name], 3),
                    "place": round(float(np.mean(draws < values[name])), 4),
                    "half_width": round(math.log(high / low) / 2, 4),
                }
            )
    return found


def scored_figures(truth: Truth, fitted: Fitted, unseen: Sequence[Measured]) -> list[Record]:
    """Return the unseen figures with the errors of their predictions."""
    by_run = {each.row.run_id: each for each in unseen}
    known = {each.layout for each in truth.of.read(truth.trained)}
    new = {row.run_id: row.layout not in known for row in truth.of.read(truth.unseen)}
    found = []
    for each in predict_table(truth.of, fitted, [each.row for each in unseen]):
        if each.quantity not in QUANTITIES or each.measured is None:
            continue
        band, own = each.predicted, by_run[each.run_id]
        found.append(
            {
                "quantity": each.quantity,
                "run": each.run_id,
                "new_layout": new[each.run_id],
                "decided": each.identifiable,
                "place": round(place(Outcome("", band.value, band.low, band.high, each.measured)), 4),
                "error": round(band.value / each.measured - 1, 4),
                "exact_error": round(band.value / own.exact[each.quantity] - 1, 4),
                "repeat_error": round(own.exact[each.quantity] / each.measured - 1, 4),
                "half_width": round(math.log(band.high / band.low) / 2, 4),
            }
        )
    return found


def key() -> str:
    """Return a digest of all code that an outcome depends on."""
    parts = [refit_code(table_system(name)) for name in ("cassandra", "two-tier")]
    # Fits of documents leave the fits of tables out.
    parts += [path.read_text(encoding="utf-8") for path in sorted(TABLES.rglob("*.py"))]
    parts += [(HERE / f"{name}.py").read_text(encoding="utf-8") for name in ("synthetic_truth", "synthetic_systems")]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def finished(path: Path) -> dict[int, Record]:
    """Return the outcomes in a file by number; a line that an interruption cut off is done again."""
    found: dict[int, Record] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        found[record["number"]] = record
    return found


def outcomes(wanted: Sequence[tuple[int, str]], path: Path, workers: int) -> list[Record]:
    """Return the outcome of every system, those in the file and the others, which are added to it."""
    known = finished(path)
    left = [job for job in wanted if job[0] not in known]
    path.parent.mkdir(parents=True, exist_ok=True)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read by numpy when a worker starts
    spawn = multiprocessing.get_context("spawn")
    with path.open("a", encoding="utf-8") as file, ProcessPoolExecutor(workers, mp_context=spawn) as pool:
        if path.stat().st_size and not path.read_bytes().endswith(b"\n"):
            file.write("\n")
        running = {pool.submit(outcome, job): job[0] for job in left}
        for future in as_completed(running):
            if (error := future.exception()) is not None:
                print(f"{running[future]}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                continue
            record = future.result()
            known[record["number"]] = record
            file.write(json.dumps(record) + "\n")
            file.flush()
            print(line_of(record), file=sys.stderr, flush=True)
    failed = [number for number, _ in wanted if number not in known]
    if failed:
        sys.exit(f"{len(failed)} systems failed, {failed[0]} among them: the others are kept, so run this again")
    return [known[number] for number, _ in wanted]


def line_of(record: Record) -> str:
    """Return an outcome in one line."""
    shares = " ".join(f"{sum(map(held, record[name]))}/{len(record[name])}" for name in ("parameters", "figures"))
    error = np.median([abs(each["error"]) for each in record["figures"]])
    where = f"{record['system']}, {record['design']}, {record['load']} {record['altered']}".strip()
    took = f"{record['simulated_s']:.1f} + {record['fitted_s']:.1f} s"
    return f"{record['number']}: {shares} in their bands, error {error:.1%}, {took} ({where})"


def held(record: Record) -> bool:
    """Whether the 90 % band of a parameter or a figure holds it."""
    return bool(abs(record["place"] - 0.5) <= 0.45)


def summary(records: Sequence[Record]) -> dict[str, Any]:
    """Return the shares of bands that hold, errors and widths: of systems as modelled, and of the others by kind."""
    kinds = {"as modelled": [each for each in records if not each["altered"]]}
    altered = [each for each in records if each["altered"] in ALTERATIONS]
    kinds |= {name: [each for each in records if each["altered"] == name] for name in PAUSES_S}
    if altered:
        kinds["misspecified"] = altered
        kinds |= {name: [each for each in altered if each["altered"] == name] for name in ALTERATIONS}
    return {name: _of_kind(own) for name, own in kinds.items() if own}


def _of_kind(records: Sequence[Record]) -> dict[str, Any]:
    figures = [record["figures"] for record in records]
    quantities = {name: [[each for each in own if each["quantity"] == name] for own in figures] for name in QUANTITIES}
    return {
        "systems": len(records),
        "rows": [min(each["rows"] for each in records), max(each["rows"] for each in records)],
        "verdicts": verdicts([each for own in figures for each in own]),
        "parameters": _split([record["parameters"] for record in records]),
        "figures": _split(figures),
        "groups": {
            name: levels([each for each in records if name in (each["load"], each["system"])]) for name in GROUPS
        },
        "quantities": {name: _split(own) for name, own in quantities.items()},
        "layouts": {
            name: _split([[each for each in own if each["new_layout"] == new] for own in figures])
            for name, new in (("fitted", False), ("other", True))
        },
    }


def levels(records: Sequence[Record]) -> dict[str, Any]:
    """Return what central bands of each level hold of the decided parameters and figures, with 90 % intervals."""
    found: dict[str, Any] = {}
    for what in ("parameters", "figures"):
        pairs = [(record, each) for record in records for each in record[what] if is_decided(each)]
        places, systems = np.array([each["place"] for _, each in pairs]), [str(own["number"]) for own, _ in pairs]
        bands = [held_bands(places, systems, level) for level in LEVELS] if pairs else []
        found[what] = [
            [each.level, *(round(float(one), 4) for one in (each.held, each.low, each.high))] for each in bands
        ]
    return {"systems": len(records), **found}


def is_decided(record: Record) -> bool:
    """Whether the rows decide a figure, or removed half of the width of a parameter's prior."""
    return bool(record["decided"] >= DECIDED)


def verdicts(figures: Sequence[Record]) -> dict[str, Any]:
    """Return how often yes and no are right, over objectives that are half to twice the predicted figure.

    Each unseen figure is asked for at bounds that are even on a logarithmic scale; the risk is that of its band.
    """
    log_bounds = np.linspace(-math.log(2), math.log(2), BOUNDS)
    asked = [(each, float(log_bound)) for each in figures for log_bound in log_bounds]
    found: dict[str, list[bool]] = {"yes": [], "uncertain": [], "no": []}
    for each, log_bound in asked:
        sd = max(each["half_width"], 1e-9) / NormalDist().inv_cdf(0.95)
        risk = 1 - NormalDist().cdf(log_bound / sd)
        found[answer(risk)].append(-math.log1p(each["error"]) <= log_bound)
    right = {"yes": found["yes"], "no": [not met for met in found["no"]]}
    return {
        "questions": len(asked),
        "uncertain": round(len(found["uncertain"]) / max(len(asked), 1), 4),
        **{word: {"count": len(each), "right": round(float(np.mean(each)), 4)} for word, each in right.items() if each},
    }


def _split(by_system: Sequence[Sequence[Record]]) -> dict[str, Any]:
    return {
        "decided": scores([[each for each in own if is_decided(each)] for own in by_system]),
        "all": scores(by_system),
    }


def scores(by_system: Sequence[Sequence[Record]]) -> dict[str, float | int | None]:
    """Return what 90 % bands hold, the median errors and the median half-width."""
    every = [each for own in by_system for each in own]
    if not every:
        return {"count": 0}
    found: dict[str, float | int | None] = {
        "count": len(every),
        "held": round(sum(map(held, every)) / len(every), 4),
        "half_width": _median(each["half_width"] for each in every),
    }
    for name in ("error", "exact_error", "repeat_error"):
        if name in every[0]:
            found[name] = _median(abs(each[name]) for each in every)
    return found


def _median(values: Iterable[float]) -> float:
    return round(float(np.median(list(values))), 4)


def main() -> None:
    """Measure the systems that are not finished, then write the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=SYSTEMS)
    parser.add_argument("--altered", type=int, default=ALTERED)
    parser.add_argument("--paused", type=int, default=PAUSED)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    path = user_cache() / f"synthetic-systems-{key()}.jsonl"
    asked = given.systems, given.altered, given.paused
    found = summary(outcomes(jobs(*asked), path, given.workers))
    text = json.dumps(found, indent=1) + "\n"
    if given.write or asked == (SYSTEMS, ALTERED, PAUSED):
        replace_file(RESULT, text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
