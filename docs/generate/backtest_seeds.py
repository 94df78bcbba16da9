"""Run every backtest of the page with five seeds and keep how scores scatter: docs/reference/skill-scatter.csv.

Run from anywhere: `uv run python docs/generate/backtest_seeds.py`, or `uv run just backtest-seeds` (an hour; resumes if
interrupted: remove dist/backtest-seeds to begin again).
"""

from __future__ import annotations

from dataclasses import astuple, fields

from backtest import KINDS, kept_figures
from ratchet import ROOT, Figure, cells, keep_scatter, kept, scatter, write

SEEDS = range(1, 6)
FOLDER = ROOT / "dist" / "backtest-seeds"


def run() -> None:
    """Run what is not done yet; each backtest has a file with the figures of its seeds."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    splits = [(kind.name, split) for kind in KINDS for split in kind.splits]
    for number, (kind, split) in enumerate(splits):
        path = FOLDER / f"{number}.csv"
        done = kept(path)
        for seed in map(str, SEEDS):
            if seed not in done:
                done[seed] = list(kept_figures(seed, kind, split, split.found(int(seed))))
                write(
                    path,
                    [each.name for each in fields(Figure)],
                    (astuple(each) for own in done.values() for each in own),
                )


def main() -> None:
    """Run, and write the scatter of each cell."""
    run()
    figures = [each for path in FOLDER.glob("*.csv") for own in kept(path).values() for each in own]
    keep_scatter(
        {
            cell: scatter([[each for each in own if each.release == str(seed)] for seed in SEEDS])
            for cell, own in cells(figures).items()
        }
    )


if __name__ == "__main__":
    main()
