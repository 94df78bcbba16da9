"""Write docs/reference/load-generators.md from the table that `just load-generators` measured on a lab.

Run from anywhere: `uv run python docs/generate/load_generators.py`. `load_generators_runs.py` measures.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from capplan.evidence.load_tests import LOAD_TESTS

HERE = Path(__file__).resolve().parent
FOLDER, PAGE = HERE.parent / "reference" / "load-generators", HERE.parent / "reference" / "load-generators.md"


def lines() -> Iterator[str]:
    """Yield one line for each load and generator, with the means of the repeats."""
    frame = LOAD_TESTS.read(FOLDER / "runs.csv")
    closed = frame["clients"].map(lambda count: "1 client" if count == 1 else f"{count:.0f} clients")
    frame["load"] = closed.where(frame["load_kind"] == "closed", frame["offered_tps"].map("{:,.0f}/s".format))
    for (load, generator), repeats in frame.groupby(["load", "source"], sort=False):
        mean = repeats.mean(numeric_only=True)
        added = "" if repeats["generator_added_ms"].isna().all() else f"{mean['generator_added_ms']:.3g}"
        rate = f"{mean['throughput_tps']:,.0f}/s"
        times = [f"{mean[f'latency_{each}_ms']:.3g}" for each in ("p50", "p99")]
        yield f"| {' | '.join([load, generator, rate, *times, added])} |"


def page() -> str:
    """Return the page."""
    loader = Environment(loader=FileSystemLoader(HERE), undefined=StrictUndefined, keep_trailing_newline=True)  # noqa: S701  # Markdown
    return loader.get_template("load-generators.md").render(lines=lines)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
