"""Whether backtests became worse since the last release, by kind of question and quantity: no release may hide it.

`just backtest` keeps every figure of the page's backtests under today's version, and prints what became worse than in
the release before. `just release` runs this file, which stops it unless a decision record says so in a line such as
`Worse since 0.1.0: Load curves, p99.` A cell is a kind of question and a quantity. Releases are compared on the figures
that both have; a figure that the new one lacks makes its cell worse. Chance moves a score, as a fit draws its ensemble,
so a change counts from twice the standard deviation that five seeds have (`just backtest-seeds`).
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, median, stdev

from skill import crps, quantiles

from capplan.calibration.tables.scores import BacktestRow
from capplan.files import replace_file
from capplan.grouped import grouped
from capplan.reports.backtest import in_words

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
SCORES, FIGURES, SCATTER = (REFERENCE / f"skill{part}.csv" for part in ("", "-figures", "-scatter"))
TABLES = 5
"""Tables from which the mean score of a cell is judged; with fewer, the median error of its figures is."""
WORSE, WORSE_OF_FEW = 0.05, 0.1
"""Growth of the score, and of the median error where tables are few, that counts as worse."""
LEAST = 0.001
"""Growth of a score that counts at least: no source states its figures more finely."""
SCATTERS = 2
"""Standard deviations of a score between seeds that a change must exceed, too."""

Cell = tuple[str, str]
"""Kind of question, and quantity."""


@dataclass(frozen=True)
class Figure:
    """A predicted and measured figure of a release; `split` says which rows of the table were fitted."""

    release: str
    kind: str
    table: str
    split: str
    run_id: str
    request_class: str
    quantity: str
    measured: float
    value: float
    low: float
    high: float

    @property
    def cell(self) -> Cell:
        """What it is judged with."""
        return self.kind, self.quantity

    @property
    def key(self) -> tuple[str, ...]:
        """What the same figure of another release has in common with it."""
        return self.kind, self.table, self.split, self.run_id, self.request_class, self.quantity

    @property
    def error(self) -> float:
        """Distance between prediction and measurement in the logarithm."""
        return abs(math.log(self.value / self.measured))


@dataclass(frozen=True)
class Score:
    """How well a release predicts the figures of a cell."""

    figures: int
    tables: int
    crps: float
    held_90: float
    median_ratio: float
    median_abs_log_error: float


@dataclass(frozen=True)
class Scatter:
    """Standard deviations of two scores of a cell between seeds, as shares of their means, over some figures."""

    seeds: int
    figures: int
    crps: float
    median_abs_log_error: float


def figures_of(release: str, kind: str, table: str, split: str, rows: Iterable[BacktestRow]) -> Iterator[Figure]:
    """Yield the figures of a backtest that have a finite prediction."""
    for row in rows:
        band = row.predicted
        if row.measured > 0 and band.low > 0 and math.isfinite(band.high):
            numbers = (float(f"{each:.5g}") for each in (row.measured, band.value, band.low, band.high))
            yield Figure(release, kind, table, split, row.run_id, row.request_class or "", row.quantity, *numbers)


def score(figures: Sequence[Figure]) -> Score:
    """Return the scores of the figures of a cell; tables count equally in the CRPS."""
    by_table = grouped(figures, lambda each: each.table)
    return Score(
        figures=len(figures),
        tables=len(by_table),
        crps=fmean(fmean(crps(each.measured, quantiles(each)) for each in own) for own in by_table.values()),
        held_90=fmean(each.low <= each.measured <= each.high for each in figures),
        median_ratio=median(each.value / each.measured for each in figures),
        median_abs_log_error=median(each.error for each in figures),
    )


def scatter(seeds: Sequence[Sequence[Figure]]) -> Scatter:
    """Return the scatter of a cell from its figures by seed, at least two, over those that all seeds have."""
    common = set.intersection(*({each.key for each in own} for own in seeds))
    scores = [score([each for each in own if each.key in common]) for own in seeds]
    columns = ([each.crps for each in scores], [each.median_abs_log_error for each in scores])
    return Scatter(len(seeds), len(common), *(stdev(each) / fmean(each) if any(each) else 0.0 for each in columns))


def worse(before: Sequence[Figure], after: Sequence[Figure], by_chance: Scatter | None) -> str:
    """Return in what way a cell became worse from one release to another; empty if it did not.

    Parameters
    ----------
    before, after : sequence of Figure
        Its figures in both releases.
    by_chance : Scatter or None
        Its scatter; None if it was not measured.
    """
    common = {each.key for each in before} & {each.key for each in after}
    if lost := len({each.key for each in before} - common):
        return f"{lost} of {len(before)} figures are no longer predicted"
    old, new = (score([each for each in own if each.key in common]) for own in (before, after))
    few = old.tables < TABLES
    name, least = ("median_abs_log_error", WORSE_OF_FEW) if few else ("crps", WORSE)
    was, now = getattr(old, name), getattr(new, name)
    limit = max(least, SCATTERS * getattr(by_chance, name)) if by_chance else least
    if now - was <= max(limit * was, LEAST):
        return ""
    what = "median |log error|" if few else "CRPS"
    return f"{what} {was:.3f} -> {now:.3f} on {old.figures} figures of {old.tables} tables (limit {limit:+.0%})"


def cells(figures: Iterable[Figure]) -> dict[Cell, list[Figure]]:
    """Return figures by cell."""
    return grouped(figures, lambda each: each.cell)


def changes(before: Sequence[Figure], after: Sequence[Figure], by_chance: Mapping[Cell, Scatter]) -> dict[Cell, str]:
    """Return the cells of a release that are worse than in an earlier one, and how."""
    now = cells(after)
    found = {cell: worse(own, now.get(cell, []), by_chance.get(cell)) for cell, own in cells(before).items()}
    return {cell: how for cell, how in found.items() if how}


def named(cell: Cell, since: str, records: Iterable[str]) -> bool:
    """Whether one of the decision records says that a cell became worse since a release."""
    kind, quantity = cell
    line = f"Worse since {since}: {kind}, {in_words(quantity)}."
    return any(line in " ".join(record.split()) for record in records)


def judged(
    releases: Mapping[str, Sequence[Figure]], today: str, by_chance: Mapping[Cell, Scatter]
) -> tuple[str, dict[Cell, str]]:
    """Return the release before today's, and what is worse since; empty if there is none."""
    earlier = [name for name in releases if name != today]
    if not earlier:
        return "", {}
    return earlier[-1], changes(releases[earlier[-1]], releases[today], by_chance)


def code() -> str:
    """Return what identifies the code, the tables and the splits that the backtests are made with."""
    places = ("src/capplan/**/*.py", "tests/published/load_tests/*.csv", "docs/generate/backtest.py")
    paths = [path for place in places for path in ROOT.glob(place)]
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def kept(path: Path | None = None) -> dict[str, list[Figure]]:
    """Return the figures that are kept in a file, by release, the latest last; by default those of all releases."""
    return grouped((_figure(each) for each in rows(path or FIGURES)), lambda each: each.release)


def _figure(cells_of_row: Mapping[str, str]) -> Figure:
    numbers = ("measured", "value", "low", "high")
    return Figure(**{name: float(text) if name in numbers else text for name, text in cells_of_row.items()})  # type: ignore[arg-type]  # fields by name


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file; none if there is no such file."""
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))) if path.exists() else []


def measured_scatter() -> dict[Cell, Scatter]:
    """Return the scatter of each cell that has one."""
    return {
        (each["kind"], each["quantity"]): Scatter(
            int(each["seeds"]), int(each["figures"]), float(each["crps"]), float(each["median_abs_log_error"])
        )
        for each in rows(SCATTER)
    }


def keep_scatter(found: Mapping[Cell, Scatter]) -> None:
    """Keep the scatter of each cell."""
    lines = (
        (*cell, each.seeds, each.figures, f"{each.crps:.3g}", f"{each.median_abs_log_error:.3g}")
        for cell, each in found.items()
    )
    write(SCATTER, ["kind", "quantity", *(field.name for field in fields(Scatter))], lines)


def keep(found: Sequence[Figure], release: str, source: str) -> None:
    """Keep the figures and scores of a release as the last one, in place of earlier ones of the same name."""
    others = [each for name, own in kept().items() if name != release for each in own]
    write(FIGURES, [field.name for field in fields(Figure)], (astuple(each) for each in (*others, *found)))
    scores = [
        {"release": release, "code": source, "kind": kind, "quantity": quantity}
        | {name: f"{each:.4g}" for name, each in asdict(score(own)).items()}
        for (kind, quantity), own in cells(found).items()
    ]
    before = [each for each in rows(SCORES) if each["release"] != release]
    write(SCORES, list(scores[0]), (each.values() for each in (*before, *scores)))


def write(path: Path, heads: Sequence[str], lines: Iterable[Iterable[object]]) -> None:
    """Write a file of comma-separated values."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(map(list, lines))
    replace_file(path, text.getvalue())


def say(since: str, found: Mapping[Cell, str]) -> None:
    """Print what became worse."""
    print(f"Worse since {since}:{'' if found else ' no kind of question'}")
    for (kind, quantity), how in found.items():
        print(f"  {kind}, {in_words(quantity)}: {how}")


def objections(
    releases: Mapping[str, Sequence[Figure]],
    release: str,
    by_chance: Mapping[Cell, Scatter],
    records: Sequence[str],
    same_code: bool,
) -> list[str]:
    """Return why a release must stop: its figures are not kept, or of other code, or worse without a record."""
    if release not in releases or not same_code:
        return [f"no backtests of {release} by this code are kept: run `just backtest` and commit what it writes"]
    since, found = judged(releases, release, by_chance)
    return [
        f"{kind}, {in_words(quantity)} is worse and no record has the line "
        f"'Worse since {since}: {kind}, {in_words(quantity)}.': {how}"
        for (kind, quantity), how in found.items()
        if not named((kind, quantity), since, records)
    ]


def main() -> int:
    """Print what became worse since the last release; 1 if a decision record is missing."""
    release = version("capplan")
    records = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "decisions").glob("*.md"))]
    same_code = any(each["release"] == release and each["code"] == code() for each in rows(SCORES))
    found = objections(kept(), release, measured_scatter(), records, same_code)
    sys.stderr.writelines(f"{each}\n" for each in found)
    return bool(found)


if __name__ == "__main__":
    raise SystemExit(main())
