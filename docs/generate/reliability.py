"""Write docs/reference/reliability.md from what `just faults`, `mutants`, `endurance` and `trust` have counted."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

DOCS = Path(__file__).resolve().parents[1]
REFERENCE = DOCS / "reference"
PAGE, INPUTS, GUIDED, QUESTIONS, FAULTS, MUTANTS, ENDURANCE = (
    REFERENCE / name
    for name in (
        "reliability.md",
        "inputs.jsonl",
        "guided-inputs.json",
        "questions.json",
        "faults.json",
        "mutants.jsonl",
        "endurance.json",
    )
)
EQUIVALENT = DOCS.parent / "tests" / "mutants" / "equivalent.json"
GOAL = 0.85
TEXT = """# Reliability

What capplan does when an input is hostile, a disk is full or a process is killed, how many faults of the code the tests
notice, and what happens in long runs. `just faults`, `just mutants`, `just endurance` and the random questions of
`just trust` measure the figures.

## Rules

- **Files.** A result is written to a temporary file beside it, which is then renamed. So a file is there as a
  whole, as it was before, or not at all. Two runs with the same output never mix: one whole file is left. What is no
  regular file, such as a pipe, a device or a dangling link, is refused.
- **Interruptions.** After SIGINT, SIGTERM or SIGHUP nothing unfinished is left, and the exit code is 128 plus the
  number of the signal. What a killed process leaves (`.capplan-*.new`) is removed by the next one that writes to the
  folder. `sweep --out` and `calibrate` resume; a second run with the same output is refused meanwhile.
- **Kept results.** What an interrupted run or the cache holds is checked when it is read. What is damaged is computed
  again. A cache that cannot be written is not used, and capplan says so.
- **Text.** Names have no control characters, no invisible characters, at most 200 characters, and do not begin
  with `=`, `+`, `-` or `@`, which begin formulas in spreadsheets. Whatever is echoed is escaped and cut. In CSV, a text
  that looks like a formula has an apostrophe in front; capplan reads it back without.
- **Work.** capplan estimates work before it begins. On a nominal machine, it refuses a layout that takes more than a
  minute to solve, a simulation, a sweep or a search for a layout of more than an hour, and a simulation of more than
  4 GiB of memory; `--no-limits` accepts them. Rates are at most 10^9 per second, and files that people write at most
  4 MiB.
- **Sign of life.** What takes longer than two seconds says so on stderr, and again every minute.
- **Refusals.** Bad input, a full disk and a closed stdout end in one sentence on stderr, with exit code 2.
- **Defects.** An error that capplan should not have ends in one sentence with exit code 70, never in the 1 of a *no*.

## Hostile inputs

{inputs}

An input is a valid scenario, network, fitted file, table, output of a load generator, body of a request to `serve`,
state of a lab, option or command line with one to four changes: words replaced by hostile ones, parts cut off or
repeated, bytes changed. One in a hundred is a command line, a third are files, the others texts of options. {guided}
It must be read, or refused in one sentence, within ten seconds of computing and a gigabyte,
and without touching a file outside its folder.

## Valid questions

{questions} random valid questions were put to every verb that answers, about every kind of layout and network, with
options drawn from what each declares. A question is one command line, or several whose answers must agree.
{answered}

Each must end within three minutes of computing and without a traceback, with one sentence where there is no answer.
Bands and percentiles are in order, every verdict follows one rule, no loss is an advantage, Little's law holds, all
verbs give the same figures, more machines carry no less, and latencies rise with the load. One document says otherwise:
deletes of fedora4 hold a thread three times as long on four nodes as on three, so
where threads are the limit, four can carry less, and the answer must say so. No text has a word of Python such as
`nan`, pages, PDFs, workbooks and tables can be read, and the figures of a CSV are those of the JSON. {contradicted}

{verbs_asked}

{formats_asked}

## Faults while verbs write

{faults}
{note}
Each fault meets a command that writes, listens or prints: {verbs}.

Its files are there before the fault. *Survived* means that each is as it was or complete, nothing else is left, the
exit code is right, and the same command afterwards writes what an undisturbed run writes, byte for byte. *Lost* means
that a file is gone, or that a run ended well without it. A signal may come when a command has just ended, and the
smallest disk may still hold a small file: such faults count, too, as nothing was lost. *Torn* means that a file has a
part of its content. After a fault of `lab`, `lab down` must leave no process and no file, and `lab up` must work again;
after one of `serve`, no process may be left. After a fault of `validate --live`, the next run must keep all runs and
predictions, and write its report.

## Faults in the code

`just mutants` changes the code that decides answers, one place at a time: another operator, a number one higher or
lower, a negated condition, a loop that never runs. The default tests that run the changed line then have a minute and a
half to notice. {mutants}

## Long runs

{endurance}
"""


def generated() -> str:
    """Return the page."""
    read = (GUIDED, QUESTIONS, FAULTS)
    guided, questions, faults = (json.loads(path.read_text(encoding="utf-8")) for path in read)
    return TEXT.format(
        inputs=_inputs(_journal(INPUTS)),
        guided=_guided(guided),
        questions=f"{questions['questions']:,}",
        answered=_answered(questions["verbs"]),
        verbs_asked=_asked("verb", questions["verbs"]),
        formats_asked=_asked("format", questions["formats"]),
        contradicted=_contradicted(questions["broken"]),
        faults=_table(faults["kinds"]),
        note=_note(faults.get("note", "")),
        verbs=_listed(faults["verbs"]),
        mutants=_mutants(_journal(MUTANTS), json.loads(EQUIVALENT.read_text(encoding="utf-8"))),
        endurance=_endurance(json.loads(ENDURANCE.read_text(encoding="utf-8"))),
    )


def _journal(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a campaign."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def equivalent(mutant: Mapping[str, Any], reasons: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether somebody has found that a change makes no difference that a user could see."""
    return any(each["file"] == mutant["file"] and each["change"] == mutant["change"] for each in reasons)


def _mutants(tried: Sequence[Mapping[str, Any]], reasons: Sequence[Mapping[str, Any]]) -> str:
    """Return the score by subject, without the changes that make no difference."""
    rows = [("subject", "changes", "no difference", "noticed", "not noticed", "score"), ("---", *["---:"] * 5)]
    strata = list(dict.fromkeys(each["stratum"] for each in tried))
    for name, chosen in [*((each, [each]) for each in strata), ("all", strata)]:
        found = [each for each in tried if each["stratum"] in chosen]
        noticed = sum(each["outcome"] == "noticed" for each in found)
        same = sum(each["outcome"] != "noticed" and equivalent(each, reasons) for each in found)
        counted = len(found) - same
        rows.append(
            (
                name,
                *(f"{count}" for count in (len(found), same, noticed, counted - noticed)),
                f"{100 * noticed / counted:.0f} %",
            )
        )
    interval = binomtest(noticed, counted).proportion_ci(0.95, "wilson")
    low, high = (f"{100 * each:.0f}" for each in (interval.low, interval.high))
    score = f"They noticed {noticed / counted:.0%} (95 % interval {low} to {high} %; the goal is {GOAL:.0%})."
    reason = "Changes that make no difference are listed with the reason in `tests/mutants/equivalent.json`."
    spaced = re.sub(r"(?<=\d)%", " %", score)
    return f"{spaced}\n{reason}\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _endurance(known: Mapping[str, Any]) -> str:
    """Return what the long runs showed."""
    rows = [("run", "requests", "minutes", "MiB early", "MiB late", "drift"), ("---", *["---:"] * 5)]
    for key, name in (
        ("mm4", "M/M/4 in one simulation; drift: its mean against Erlang's formula"),
        ("week", "a week of the default layout at 1,000 requests/s; drift: mean of `acct` against that of one hour"),
        ("serve", "`serve` with 50 clients; drift: median answer, late against early"),
    ):
        if key in known:
            each = known[key]
            drift = each.get("error", each.get("late_s", 1) / each.get("early_s", 1) - 1)
            figures = (
                f"{each['requests']:,}",
                f"{each['seconds'] / 60:.1f}",
                f"{each['early_mib']:.0f}",
                f"{each['late_mib']:.0f}",
            )
            rows.append((name, *figures, f"{100 * drift:+.2g} %"))
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    if "week" in known:
        table += (
            f"\n\nAn hour of the week's simulation ends with {known['week']['hour_late_mib']:.0f} MiB: a run of any "
            "length has 120\nintervals, and the memory for their histograms is used one after the other."
        )
    return "\n\n".join([table, *(each["note"] for each in known.values() if "note" in each)])


def _note(text: str) -> str:
    """Return what a reader must know of the counts, as a paragraph."""
    return f"\n{text}\n" if text else ""


def _answered(verbs: Mapping[str, Mapping[str, int]]) -> str:
    """Return how many command lines had an answer; one that is refused is checked, too, and says less."""
    lines, answered = (sum(each) for each in zip(*map(_of_all, verbs.values()), strict=True))
    return (
        f"{answered:,} of {lines:,} lines were answered ({100 * answered / lines:.0f} %); most others were refused, as "
        "some layouts break a rule."
    )


def _of_all(outcomes: Mapping[str, int]) -> tuple[int, int]:
    """Return how many lines were asked, and how many of them were answered."""
    return sum(outcomes.values()), outcomes.get("answered", 0)


def _asked(what: str, counts: Mapping[str, Mapping[str, int]]) -> str:
    """Return a table of lines by outcome."""
    rows = [(what, "lines", "answered", "refused", "answered, %"), ("---", *["---:"] * 4)]
    for name, its in counts.items():
        lines, answered = _of_all(its)
        figures = (f"{lines:,}", f"{answered:,}", f"{its.get('refused', 0):,}", f"{100 * answered / lines:.0f}")
        rows.append((name, *figures))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _contradicted(rules: Mapping[str, int]) -> str:
    if not rules:
        return "None of the questions broke one of these rules."
    each = ", ".join(f"{name} ({count})" for name, count in rules.items())
    return f"Rules that questions broke, and how many did: {each}."


def _inputs(pieces: Sequence[Mapping[str, Any]]) -> str:
    rules = Counter(
        broken["rule"].partition(":")[0].partition(" /")[0] for piece in pieces for broken in piece["broken"]
    )
    found = f"Of {sum(each['inputs'] for each in pieces):,} inputs, {rules.total():,} broke a rule"
    return f"{found}{': ' if rules else '.'}{', '.join(f'{count} {rule}' for rule, count in rules.items())}"


def _guided(readers: Mapping[str, Mapping[str, Any]]) -> str:
    tried = [each for each in readers.values() if each["inputs"]]
    inputs, seconds = (sum(each[key] for each in tried) for key in ("inputs", "seconds"))
    broken = sum(bool(each["broken"]) for each in tried)
    return (
        f"Beside them, atheris tried {inputs:,} inputs that coverage led it to in {seconds / 60:.0f} minutes of "
        f"computing, at {len(tried)} readers of files and options; {broken or 'none'} of the readers broke a rule."
    )


def _table(kinds: Mapping[str, Mapping[str, int]]) -> str:
    columns = ("injected", "survived", "lost", "torn")
    every = {column: sum(int(each[column]) for each in kinds.values()) for column in columns}
    rows = [("fault", *columns), ("---", *["---:"] * len(columns))]
    rows += [(name, *(f"{int(each[column]):,}" for column in columns)) for name, each in sorted(kinds.items())]
    rows.append(("all", *(f"{every[column]:,}" for column in columns)))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _listed(verbs: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in verbs)


def main() -> int:
    """Write the page, or check it."""
    text = generated()
    stale = not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text
    if stale and "--check" not in sys.argv:
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    return stale and "--check" in sys.argv


if __name__ == "__main__":
    sys.exit(main())
