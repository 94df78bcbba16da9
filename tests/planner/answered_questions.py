"""Answers to valid questions: the command line in this process, and what must hold of what it prints."""

from __future__ import annotations

import io
import json
import math
import re
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.planner.printed_answers import Violation, of_content, of_pair, of_text
from tests.planner.valid_questions import NETWORK, PLACE, Asked, Words, folder, verb_of

from capplan.answers.results import STATISTICS
from capplan.answers.verdict import answer as answer_at
from capplan.cli.main import main

LONGEST_S = 180.0
"""CPU time of a line after which it counts as endless: some layouts whose data centres differ take half of it."""
SOLVED = 0.02
"""Error of a figure of the solver, from one layout or rate to the next."""
WRITING = ("-o", "--out", "--output", "--plot", "--trace", "--junit", ">")
"""Options that a file to write follows, and the redirection of stdout."""
TIMES = 0.05
"""Error of a time from one choice of draws to another: a few of them represent all."""
ROUNDED = 2e-3
"""Of figures with four digits."""
_PROGRESS = re.compile(r"is still at work|\.\.\.$")
_SECOND = re.compile(r"(?<!e\.g)(?<!etc)[.!?] [A-Z]")

Tree = Mapping[str, Any]


class EndlessError(Exception):
    """A line takes longer than any may."""


@dataclass(frozen=True)
class Answer:
    """What a command line printed.

    Attributes
    ----------
    line
        The command line.
    code
        Exit code; None if it ended in a traceback.
    found
        The JSON; None where there is none.
    said
        Sentences on stderr.
    broke
        Last frame and message of a traceback; empty without one.
    printed
        What it printed.
    written
        Contents of the files that it wrote, by name.
    """

    line: Words
    code: int | None
    found: Any
    said: tuple[str, ...]
    broke: str = ""
    printed: str = ""
    written: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def answered(self) -> bool:
        """Whether there is an answer, whatever it is."""
        return self.code in (0, 1)

    @property
    def verb(self) -> str:
        """The verb; that of a question about a network is one of its own."""
        return f"{verb_of(self.line)} of a network" if NETWORK in self.line else verb_of(self.line)

    @property
    def formats(self) -> tuple[str, ...]:
        """Formats that the line asks for: those of stdout and of files."""
        printed = next((each for each in ("json", "csv") if f"--{each}" in self.line), "screen")
        return (printed, *(name.rpartition(".")[2] for name in _outputs(self.line)))


def _outputs(line: Words) -> list[str]:
    """Return the files that a line writes."""
    found = [word for option, word in pairwise(line) if option in WRITING]
    return [*found, "validation.md", "validation.html"] if "--report" in line else found


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """End what takes more CPU time."""

    def end(*_: Any) -> None:
        raise EndlessError

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def answer(line: Words) -> Answer:
    """Run a command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    words = line[: line.index(">")] if ">" in line else line
    try:
        with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings(), bounded(LONGEST_S):
            warnings.simplefilter("ignore")
            code = main(words)
    except EndlessError:
        return Answer(line, None, None, (), "endless")
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        frame = f"{Path(where.filename).name}:{where.name}"
        return Answer(line, None, None, (), f"{type(error).__name__} in {frame}: {error}"[:200])
    text = out.getvalue()
    found = json.loads(text, parse_constant=_refused) if text and "--json" in line else None
    sentences = (each.removeprefix("capplan: ") for each in err.getvalue().replace("\r", "\n").splitlines())
    if ">" in line:
        Path(line[-1]).write_text(text, encoding="utf-8")
    said = tuple(each for each in sentences if each and not _PROGRESS.search(each))
    written = {name: Path(name).read_bytes() for name in _outputs(line) if Path(name).exists()}
    return Answer(line, code, found, said, printed=text, written=written)


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def answers(asked: Asked) -> list[Answer]:
    """Answer the lines of a question in the folder of this process."""
    place = folder()
    for name, text in asked.files.items():
        (place / name).write_text(text.replace(PLACE, f"{place}/"), encoding="utf-8")
    outputs = {name for line in asked.lines for name in _outputs(line)}
    found: list[Answer] = []
    with chdir(place):
        for name in outputs:
            Path(name).unlink(missing_ok=True)
        for line in asked.lines:
            found.append(answer(line))
            if not found[-1].answered or _lacks_result(found[-1]):
                break
        for name in outputs:
            Path(name).unlink(missing_ok=True)
    return found


def _lacks_result(its: Answer) -> bool:
    """Whether a line answers that there is no layout: the next lines would read it."""
    if its.line[0] == "size" and ">" in its.line:
        return bool(its.found["chosen"] is None)
    return its.line[0] in ("proposal", "calibrate") and not its.written


def violations(asked: Asked) -> list[Violation]:
    """Return the invariants that the answers to a question break."""
    return broken_by(asked, answers(asked))


def broken_by(asked: Asked, found: Sequence[Answer]) -> list[Violation]:
    """Return the invariants that some answers to a question break."""
    broken = [each for answered in found for each in (*_of_one(answered), *_of_formats(answered))]
    if not broken and len(found) == len(asked.lines) and all(each.answered for each in found):
        relation = RELATIONS.get(asked.kind)
        broken += [] if relation is None else list(relation([each.found for each in found]))
    for one, other in pairwise(found):
        if one.answered and other.answered and one.verb == other.verb and "csv" in other.formats[:1] and one.found:
            broken += of_pair(one.found, other.printed)
    return broken


def _of_formats(its: Answer) -> Iterator[Violation]:
    """Check what is printed and written, in its format."""
    where = " ".join(its.line[:2])
    for sentence in its.said:
        yield from of_text(sentence, f"stderr of {where}")
    if not its.answered:
        return
    if its.found is None and its.printed:
        yield from of_content(its.formats[0], its.printed.encode(), where)
    for name, content in its.written.items():
        yield from of_content(name.rpartition(".")[2], content, f"{where}, {name}")


def _of_one(its: Answer) -> Iterator[Violation]:
    if its.code is None:
        yield Violation("endless" if its.broke == "endless" else "traceback", its.broke)
    elif its.code not in (0, 1, 2):
        yield Violation("exit code", str(its.code))
    elif its.code == 2:
        if len(its.said) != 1 or _SECOND.search(its.said[0]):
            yield Violation("one sentence", " | ".join(its.said))
    elif its.found is not None:
        documented = its.line[0] == "evidence"  # figures as they stand, differences and one-sided limits among them
        for check in () if documented else (_bands, _percentiles, _offered, _verdicts, _outages, _sweep_rows):
            yield from check(its.found)
        if "clients" in str(its.line) and its.line[0] == "simulate":
            yield from _littles_law(its.found)


def _trees(value: Any, path: str = "") -> Iterator[tuple[str, Tree]]:
    """Yield all objects of a JSON value with their paths."""
    if isinstance(value, Mapping):
        yield path, value
        for name, each in value.items():
            yield from _trees(each, f"{path}.{name}")
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _trees(each, f"{path}[{number}]")


def _ends(band: Tree) -> list[float]:
    """Return the ends and the median of a band; null is unbounded."""
    return [math.inf if band[end] is None else float(band[end]) for end in ("low", "value", "high")]


def _bands(found: Any) -> Iterator[Violation]:
    signed = ("difference",)
    for path, tree in _trees(found):
        if {"low", "value", "high"} <= tree.keys():
            if ".estimates." in path and tree["low"] is None and tree["high"] is None:
                continue  # a rule that too few figures leave without a band
            ends = _ends(tree)
            if path.endswith(signed) and tree["low"] is None:
                ends[0] = -math.inf  # of a time that one layout may not have at all
                if tree["value"] is None and tree["high"] is not None:
                    ends[1] = -math.inf
            if ends != sorted(ends):
                yield Violation("bands are ordered", f"{path} {ends}")
            if ends[0] < 0 and not path.endswith(signed):
                yield Violation("bands are positive", f"{path} {ends}")


def _percentiles(found: Any) -> Iterator[Violation]:
    for path, tree in _trees(found):
        its = [tree[name] for name in STATISTICS[1:] if isinstance(tree.get(name), Mapping)]
        for end in ("low", "value", "high"):
            row = [math.inf if each[end] is None else each[end] for each in its if end in each]
            if any(a > b * (1 + 1e-3) for a, b in pairwise(row)):
                yield Violation("percentiles are ordered", f"{path} {end} {row}")


def _offered(found: Any) -> Iterator[Violation]:
    """Check that capacity, risk and what is carried fit together."""
    if not isinstance(found, Mapping) or not (found.get("capacity") and found.get("offered")):
        return
    capacity, offered = found["capacity"], found["offered"]
    risk, rate = offered["overload_risk"], offered["peak_tps"]
    peak, overload = _ends(capacity["peak_tps"]), _ends(capacity["overload_tps"])
    if any(a > b * (1 + SOLVED) for a, b in zip(peak, overload, strict=True)):
        yield Violation("objectives raise no capacity", f"{peak} {overload}")
    if risk is None:
        return
    if rate * (1 - ROUNDED) >= overload[2] and risk < 0.9:
        yield Violation("risk fits the capacity", f"rate {rate} band {overload} risk {risk}")
    if rate * (1 + ROUNDED) <= overload[0] and risk > 0.1:
        yield Violation("risk fits the capacity", f"rate {rate} band {overload} risk {risk}")
    if found["verdict"] and found["verdict"]["answer"] == "yes" and peak[1] <= 0:
        yield Violation("nothing is carried without a capacity", f"{peak}")
    if risk <= 0.05 and rate > overload[1] * (1 + SOLVED):
        yield Violation("risk fits the capacity", f"rate {rate} band {overload} risk {risk}")
    if risk >= 0.7 and rate < overload[1] * (1 - SOLVED):
        yield Violation("risk fits the capacity", f"rate {rate} band {overload} risk {risk}")


def _verdicts(found: Any) -> Iterator[Violation]:
    """Check that every verdict follows the one rule, and that of a layout is its worst situation's."""
    for path, tree in _trees(found):
        if {"answer", "risk", "confidence", "situations"} <= tree.keys():
            worst = max(each["risk"] for each in tree["situations"])
            if tree["risk"] != worst or (
                not tree["not_modelled"] and tree["answer"] != answer_at(worst, tree["confidence"])
            ):
                yield Violation("one rule of verdicts", f"{path} {tree}")


def _outages(found: Any) -> Iterator[Violation]:
    """Check that no loss is an advantage, unless its row has a reason."""
    if not isinstance(found, Mapping):
        return
    for row in found.get("outages") or ():
        if row["answer"] == "yes" and row["capacity_tps"] and not row["capacity_tps"]["value"]:
            yield Violation("nothing is carried without a capacity", row["name"])
        if row["eased"] or not found.get("capacity"):
            continue
        if row["capacity_tps"] is not None:
            left, whole = _ends(row["capacity_tps"]), _ends(found["capacity"]["peak_tps"])
            if any(a > b * (1 + SOLVED) for a, b in zip(left, whole, strict=True)):
                yield Violation("a loss raises no capacity", f"{row['name']} {row['lowered']} {left} {whole}")
        for name, latency in row["latency_ms"].items():
            for statistic in ("mean", "p50", "p99"):
                its, normal = latency[statistic], found["latency_ms"][name][statistic]
                if its and normal and _ends(its)[1] < _ends(normal)[1] * (1 - SOLVED):
                    yield Violation(
                        "a loss is not faster",
                        f"{row['name']} {row['lowered']} {name}.{statistic} {its['value']} {normal['value']}",
                    )


def _sweep_rows(found: Any) -> Iterator[Violation]:
    if not isinstance(found, Mapping):
        return
    for row in found.get("points") or ():
        for name in row:
            if f"{name}_low" not in row or row[name] is None:
                continue
            ends = [row[f"{name}_low"], row[name], row[f"{name}_high"]]
            ends = [math.inf if each is None else each for each in ends]
            if ends != sorted(ends):
                yield Violation("bands are ordered", f"{name} {ends}")
        for name in {key.removesuffix("_p50_ms") for key in row if key.endswith("_p50_ms")}:
            for end in ("", "_low", "_high"):
                its = [row[f"{name}_{each}_ms{end}"] for each in STATISTICS[1:]]
                its = [each for each in its if each is not None]
                if any(a > b * (1 + 1e-3) for a, b in pairwise(its)):
                    yield Violation("percentiles are ordered", f"{name}{end} {its}")


def _littles_law(found: Any) -> Iterator[Violation]:
    """Check that throughput x latency is at most the number of closed clients.

    Requests count that start within the measured time. The last of each client ends at most one longest latency later.
    """
    scenario = found.get("scenario") or {}
    clients = scenario.get("clients")
    if not clients or scenario["system"] == "arion":  # whose clients come at a rate
        return
    every = found["classes"].get("all") or next(iter(found["classes"].values()))
    latency, rate = every["latency_ms"]["actual"], every["throughput_per_s"]["value"]
    mean, longest, time_s = latency["mean"]["value"], latency["max"]["value"], found["duration_s"] - found["warmup_s"]
    if mean is None or every["completed"] < 20 * clients:
        return
    inside = rate * mean / 1e3  # the others prepare their next request
    if inside > clients * (1 + longest / 1e3 / time_s + ROUNDED):
        yield Violation("Little's law", f"{inside:.4g} of {clients} clients")


def _near(name: str, one: float | None, other: float | None, error: float) -> Iterator[Violation]:
    one, other = (math.inf if each is None else each for each in (one, other))
    if one != other and not abs(one - other) <= error * max(abs(one), abs(other)):
        yield Violation("verbs agree", f"{name} {one:.5g} {other:.5g}")


def _agreed(found: Sequence[Any]) -> Iterator[Violation]:
    """Check that predict, sweep and compare give the same capacity, mean and median."""
    predicted, swept, compared = found
    (row,) = swept["points"]
    if row["refused"]:
        yield Violation("verbs agree", f"only sweep refuses: {row['refused']}")
        return
    its = {each["figure"]: each["first"]["value"] for each in compared["differences"]}
    capacity = predicted["capacity"]["overload_tps"]["value"]
    yield from _near("sweep capacity", capacity, row["capacity_tps"], SOLVED)
    yield from _near("compare capacity", capacity, its["capacity"], SOLVED)
    yield from _near("sweep rate", (predicted["offered"] or {}).get("peak_tps"), row["offered_tps"], SOLVED)
    for name, latency in predicted["latency_ms"].items():
        for statistic in ("mean", "p50"):
            if latency[statistic] is None:
                continue
            value, figure = latency[statistic]["value"], f"{name}.{statistic}"
            yield from _near(f"sweep {figure}", value, row[f"{name}_{statistic}_ms"], TIMES)
            yield from _near(f"compare {figure}", value, its.get(figure, value), TIMES)
    for each in compared["differences"]:
        if any(abs(end) > 1e-9 for end in _ends(each["difference"])):
            yield Violation("a layout does not differ from itself", f"{each['figure']} {each['difference']}")


def _deletes_hold_longer(few: Tree, more: Tree) -> bool:
    """Whether these are three and four nodes of fedora4, and the second answer says that four can carry less.

    By the document, a delete takes 61 to 66 ms on three nodes and 190 to 216 ms on four, and it holds a thread of its
    node meanwhile. So where threads are the limit, four nodes carry 4/3 x 61/216 or more of what three do.
    """
    if more["system"] != "fedora4" or (few["scenario"].get("nodes", 3), more["scenario"].get("nodes")) != (3, 4):
        return False
    carried, then = (each["capacity"]["overload_tps"]["value"] for each in (few, more))
    said = any("four nodes or more can carry less than three" in each for each in more["evidence"]["notes"])
    return said and then > carried * 4 / 3 * 61 / 216


def _carries_more(found: Sequence[Any]) -> Iterator[Violation]:
    few, more = (each["capacity"]["overload_tps"]["value"] if each["capacity"] else None for each in found)
    if few and more is not None and more < few * (1 - SOLVED) and not _deletes_hold_longer(*found):
        yield Violation("more machines carry no less", f"{few} {more}")


def _slows(found: Sequence[Any]) -> Iterator[Violation]:
    rows = sorted((each for each in found[0]["points"] if not each["refused"]), key=lambda each: float(each["load"]))
    for name in rows[0] if rows else ():
        if not name.endswith(("_mean_ms", "_p50_ms", "_p99_ms")):
            continue
        its = [math.inf if row[name] is None else row[name] for row in rows]
        if any(b < a * (1 - SOLVED) for a, b in pairwise(its)):
            yield Violation("latency rises with the load", f"{name} {its}")


RELATIONS: Mapping[str, Callable[[Sequence[Any]], Iterator[Violation]]] = {
    "verbs agree": _agreed,
    "more machines": _carries_more,
    "more load": _slows,
}
"""What the answers of several lines must have in common, by kind of question."""
