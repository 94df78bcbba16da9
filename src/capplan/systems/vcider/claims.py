"""The register of vcider: what its document says about its own figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from capplan.calibration.audit.finding import Finding, at_least, at_most, compare
from capplan.calibration.evidence.interval import Interval
from capplan.calibration.evidence.table import Evidence, by_id
from capplan.systems.vcider.laws import FACTORS, Rows, average, cells, percent

_ONE = Interval.exactly(1.0)


def _repeated(rows: Rows) -> list[Finding]:
    """Hold what the text says of the gain over encrypted native against the averages."""
    law = "one experiment has one result"
    said = {
        "nearly": ("r1.both.nearly", "r1", "The text has a gain of nearly 60 %"),
        "r3": ("r3.both.repeated", "r3", "The text has a gain of 30 % with R3"),
        "from": ("all.gain_from", "r3", "The recommendation has a least gain of 30 %"),
        "to": ("all.gain_to", "r1", "The recommendation has a largest gain of 60 %"),
    }
    findings = []
    for name, (claim, factor, words) in said.items():
        table = average(rows, factor, "both")
        sentence = f"{words}, a ratio of {{expected}}; the average is {{documented}}."
        used = (rows[claim], table)
        findings.append(compare(f"duplicate.{name}", law, used, used[0].interval, table.interval, sentence))
    return findings


def _slower(rows: Rows) -> list[Finding]:
    """Hold "slower without encryption" against the averages, and against the largest of the cells."""
    claim, law = rows["all.slower"], "without encryption the virtual network is slower"
    findings = [
        compare(
            f"claim.slower.{factor}",
            law,
            (claim, table),
            at_most(_ONE),
            table.interval,
            f"Slower than native without encryption is a ratio of {{expected}}; the average of {factor.upper()} is "
            "{documented}.",
        )
        for factor in FACTORS
        for table in [average(rows, factor, "none")]
    ]
    every = [cell for factor in FACTORS for cell in cells(rows, factor, "none")]
    most = max(every, key=lambda cell: cell.value)
    above = sum(cell.low > 1 for cell in every)
    sentence = (
        f"Without encryption the virtual network is said to be slower; in {above} of {len(every)} cells it is faster, "
        f"by {percent(most.interval)} with columns of {most.layout['column_bytes']} bytes, within the scatter of cells."
    )
    return [*findings, compare("claim.slower.cells", law, (claim, most), at_most(_ONE), most.interval, sentence)]


def _node_only_better(rows: Rows) -> list[Finding]:
    """Hold "better over node encryption alone" against the averages, and against the least of the cells."""
    claim, law = rows["all.node_only_better"], "over node encryption alone the virtual network is better"
    findings = [
        compare(
            f"claim.node_only.{factor}",
            law,
            (claim, table),
            at_least(_ONE),
            table.interval,
            f"Better than native with node encryption is a ratio of {{expected}}; the average of {factor.upper()} is "
            "{documented}.",
        )
        for factor in FACTORS
        for table in [average(rows, factor, "internode")]
    ]
    every = [cell for factor in FACTORS for cell in cells(rows, factor, "internode")]
    least = min(every, key=lambda cell: cell.value)
    below = sum(cell.high < 1 for cell in every)
    sentence = (
        f"Over node encryption alone the virtual network is said to be better; in {below} of {len(every)} cells it is "
        f"slower, by {percent(least.interval)} with columns of {least.layout['column_bytes']} bytes."
    )
    return [*findings, compare("claim.node_only.cells", law, (claim, least), at_least(_ONE), least.interval, sentence)]


def _client_mostly(rows: Rows) -> list[Finding]:
    claim, findings = rows["all.client_mostly"], []
    for factor in FACTORS:
        node, both = average(rows, factor, "internode"), average(rows, factor, "both")
        share = (both.interval - node.interval) / (both.interval - _ONE)
        sentence = (
            f"{factor.upper()}: the gain over encrypted native is said to be the client's encryption mostly, a share "
            "of {expected}; without what node encryption alone gives, {documented} is left."
        )
        law = "the gain is the client's encryption mostly"
        used = (claim, node, both)
        findings.append(compare(f"claim.client_mostly.{factor}", law, used, claim.interval, share, sentence))
    return findings


def _with_more_replicas(rows: Rows) -> list[Finding]:
    """Hold what is said of R3 against R1: a larger loss without encryption, a larger gain with it."""
    loss, gain = rows["all.loss_grows"], rows["all.gain_grows"]
    lost, gained = "Without encryption the loss", "With encryption the gain"
    said = {
        "loss_grows": (loss, "none", lost, "over native without encryption"),
        "gain_grows.both": (gain, "both", gained, "over native with both encrypted"),
        "gain_grows.internode": (gain, "internode", gained, "over native with node encryption alone"),
    }
    laws = {loss.id: "R3 loses more without encryption", gain.id: "R3 gains more with encryption"}
    findings = []
    for name, (claim, reference, words, where) in said.items():
        one, three = (average(rows, factor, reference) for factor in FACTORS)
        sentence = (
            f"{words} is said to grow with R3, a change of {{expected}}; {where} it goes from {percent(one.interval)} "
            f"to {percent(three.interval)}, {{documented}}."
        )
        change = three.interval - one.interval
        used = (claim, one, three)
        findings.append(compare(f"claim.{name}", laws[claim.id], used, claim.interval, change, sentence))
    return findings


def _kernel(rows: Rows) -> list[Finding]:
    """Hold the gain of the kernel over user space against both kinds of user space: OpenVPN, and Cassandra's own."""
    claim, law = rows["all.kernel_dramatic"], "encryption in the kernel gains dramatically over user space"
    kinds = {"both": "clients' OpenVPN and Cassandra's own", "internode": "Cassandra's own alone, in user space too,"}
    return [
        compare(
            f"claim.kernel.{factor}.{reference}",
            law,
            (claim, table, rows["all.virtual_network"], rows["all.third_party"]),
            claim.interval,
            table.interval,
            f"{factor.upper()}: a dramatic gain of the kernel over user space is a ratio of {{expected}}; over {words} "
            f"it is {percent(table.interval)}.",
        )
        for factor in FACTORS
        for reference, words in kinds.items()
        for table in [average(rows, factor, reference)]
    ]


def _untested(rows: Rows) -> list[Finding]:
    regions, spread, trials = rows["all.regions_alike"], rows["all.variability"], rows["all.trials"]
    alike = "Several regions are expected to show ratios like those of one, {expected} of them; none was measured."
    words = f"The variability of EC2 is called {spread.text}; no spread of the {{expected}} trials is printed."
    return [
        compare("claim.regions", "several regions are like one", (regions,), regions.interval, None, alike),
        compare("claim.variability", "performance on EC2 varies", (spread, trials), trials.interval, None, words),
    ]


_CLAIMS: tuple[Callable[[Rows], list[Finding]], ...] = (
    _repeated,
    _slower,
    _node_only_better,
    _client_mostly,
    _with_more_replicas,
    _kernel,
    _untested,
)


def register(rows: Iterable[Evidence]) -> tuple[Finding, ...]:
    """Return every claim checked, contradicted or not; `rows` must be all rows of the document."""
    known = by_id(rows)
    return tuple(finding for claim in _CLAIMS for finding in claim(known))
