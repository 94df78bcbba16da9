"""The summary at the top of docs/reference/accuracy.md, computed from the tables of the page.

`uv run python docs/generate/accuracy_summary.py` renews the page's text and summary and keeps its measured tables
(`accuracy.py`, which measures them, calls it, too).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
TEMPLATE, PAGE = DOCS / "generate" / "accuracy.md", DOCS / "reference" / "accuracy.md"
PLACE = re.compile(r"\{\{(\w+)\}\}")
SIGNED = re.compile(r"\(\*\*([-+][\d.]+)%\*\*\)")
ONE, QUORUMS, POOLS = "One station", "Quorum waits", "Pools"
COMPARED: tuple[tuple[str, str, str, str], ...] = (
    (
        ONE,
        ONE,
        "",
        "exact mean for M/M/m, M/G/1 and PS, else Kimura's interpolation; percentiles by three moments",
    ),
    ("Reads of a quorum", QUORUMS, "^read", "takes replicas as independent"),
    ("Writes of a quorum", QUORUMS, "^write", "takes replicas as independent: simulate percentiles"),
    (POOLS, POOLS, "", "exact with a PS station and exponential times inside"),
    ("Pools that differ, below capacity", "Pools that differ", "90%", "exact if pools share no station"),
    ("Pools that differ, above capacity", "Pools that differ", "110%", "simulate"),
    ("`openprovider` up to 85 % of capacity", "openprovider", "60%|85%", "composed of the above"),
    ("`openprovider` at 95 and 100 %", "openprovider", "95%|100%", "composed of the above: simulate"),
)


def tables_of(page: str) -> dict[str, str]:
    """Return what stands in the template's places, by name, as a page shows it.

    Raises
    ------
    ValueError
        If the fixed text around a place is not on the page.
    """
    template = TEMPLATE.read_text("utf-8")
    names = PLACE.findall(template)
    fixed = [re.escape(each) for each in PLACE.sub("\0", template).split("\0")]
    found = re.fullmatch("(.*?)".join(fixed), page, re.DOTALL)
    if found is None:
        raise ValueError("the page has other text than the template: run accuracy.py")
    return dict(zip(names, found.groups(), strict=True))


def summary(page: str) -> str:
    """Return the summary of a page: the largest errors of each part, and what its intervals are worth."""
    head = "| part | cases | mean off by at most | p99 off by at most | how the solver works |"
    rows = [
        f"| {label} | {len(cases)} | {_largest(cases, 0):.2g} % | {_largest(cases, -1):.2g} % | {how} |"
        for label, section, pattern, how in COMPARED
        for cases in [[errors for case, errors in _errors(page, section) if re.search(pattern, case)]]
    ]
    curves = [float(each) for each in re.findall(r"\| ([\d.]+)% \| [\d.]+% \|$", _section(page, "Load curves"), re.M)]
    random = re.search(
        r"Of the (\d+) layouts up to 80 %, (\d+) have a mean within 5 %, (\d+) a p50 within 12 % and (\d+) a p99", page
    )
    held = [float(each) for each in re.findall(r"\*\*([\d.]+) %\*\*", _section(page, "Ten replications"))]
    if random is None:
        raise ValueError("the page has no sentence about random layouts")
    layouts, means, medians, tails = map(int, random.groups())
    facts = (
        f"Random layouts up to 80 % of capacity: the mean is within 5 % in {means} of {layouts}, p50 within 12 % in "
        f"{medians}, and p99 within 15 % in {tails}.",
        f"Published load curves: {sum(each <= 5 for each in curves)} of {len(curves)} are matched within 5 % in "
        "every row.",
        f"Intervals of simulated figures: {min(held):.1f} to {max(held):.1f} % of the 95 % intervals of ten long "
        "replications contain the truth.",
    )
    lines = [head, "| --- | ---: | ---: | ---: | --- |", *rows, "", *(f"- {each}" for each in facts)]
    return "\n".join(lines)


def _section(page: str, title: str) -> str:
    """Return the text under a heading."""
    found = re.search(rf"^##+ {re.escape(title)}\n(.*?)(?=^##|\Z)", page, re.M | re.S)
    if found is None:
        raise ValueError(f"the page has no part {title!r}")
    return found[1]


def _errors(page: str, section: str) -> list[tuple[str, list[float]]]:
    """Return the cases of a part with the solver's errors in per cent, from the mean to p99."""
    lines = (line for line in _section(page, section).splitlines() if SIGNED.search(line))
    return [(line.split("|")[1].strip(), [float(each) for each in SIGNED.findall(line)]) for line in lines]


def _largest(cases: Sequence[Sequence[float]], place: int) -> float:
    return max(abs(errors[place]) for errors in cases)


def filled(tables: dict[str, str]) -> str:
    """Return the page: the template with its tables, and the summary of these."""
    text = TEMPLATE.read_text("utf-8")
    for name, part in tables.items():
        if name != "short":
            text = text.replace("{{" + name + "}}", part)
    return text.replace("{{short}}", summary(text))


def main() -> int:
    """Renew the summary."""
    PAGE.write_text(filled(tables_of(PAGE.read_text("utf-8"))), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
