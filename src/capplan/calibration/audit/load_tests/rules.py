"""The rules of the audit: what each finding means, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

from capplan.calibration.audit.finding import Severity


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes
    ----------
    severity
        `refused`: a figure cannot be right, or does not mean what its name says, so it must not be believed. `caution`:
        the figures may be right, and a reader must know something about them.
    means
        What a finding means.
    action
        What to do about it.
    """

    severity: Severity
    means: str
    action: str


RULES = {
    "impossible-value": Rule(
        "refused",
        "No measurement has such a value: a cell is in another unit, or in the wrong column.",
        "Correct the cell, or leave it empty.",
    ),
    "overflowed-counter": Rule(
        "refused",
        "A counter of the tool exceeded its range.",
        "Compute the rate again from operations and run time; importing the tool's own file does.",
    ),
    "duplicate-row": Rule(
        "refused",
        "Two rows claim to be the same class of the same run.",
        "Give each run its own run_id, or remove one row.",
    ),
    "percentile-order": Rule(
        "refused",
        "A higher percentile cannot be smaller than a lower one.",
        "Import the tool's own file again; a column may be mapped wrongly.",
    ),
    "mean-bounds": Rule(
        "refused",
        "No list of latencies has this mean and these percentiles: they are of different requests, or the histogram "
        "that they come from is broken.",
        "Take mean and percentiles from one histogram of the same requests.",
    ),
    "littles-law": Rule(
        "refused",
        "Throughput x (latency + think time) exceeds the number of clients, so one of the three is wrong.",
        "Check the unit of the latency, the number of clients, and whether the load was open.",
    ),
    "mixed-units": Rule(
        "refused",
        "Latencies of one series differ a thousandfold, as if some were in another unit.",
        "Convert all latencies to milliseconds, for instance by a unit in the file of --map.",
    ),
    "coordinated-omission": Rule(
        "refused",
        "Requests were sent late or not at all, and no latency holds their wait: real clients would have waited.",
        "Repeat with an open load whose latency counts from the intended start, or offer less than the ceiling.",
    ),
    "flat-percentiles": Rule(
        "refused",
        "The percentiles do not change with the load, as of an exporter that fills every bucket of its histogram.",
        "Measure latency at the clients; use only the mean and the rate of this exporter.",
    ),
    "averaged-percentiles": Rule(
        "refused",
        "The figure of all requests is the average of its parts; the percentile of a sum is no average of percentiles.",
        "Merge the histograms (HDR logs) of the parts and read the percentile from the sum.",
    ),
    "classes-disagree": Rule(
        "refused",
        "The classes of a run do not add up to the row about all of its requests.",
        "Check that all rows are about the same run and the same time, and that no class is missing.",
    ),
    "load-kind": Rule(
        "caution",
        "Whether the load is open or closed decides what a latency means, and the table does not say.",
        "Fill in load_kind: --set load_kind=closed, or --set load_kind=open.",
    ),
    "overloaded": Rule(
        "caution",
        "More was offered than is carried. The throughput shows the capacity; the latencies grow as the run goes on.",
        "Do not read the latencies as those of a steady state. Add runs below the ceiling.",
    ),
    "backlogged": Rule(
        "caution",
        "Completions fell behind the offered rate by more than noise: the run was near or beyond its ceiling.",
        "Run longer: a backlog that grows is overload, one that ends is a pause.",
    ),
    "generator-ceiling": Rule(
        "caution",
        "The load generator may have been the bottleneck, not the system under test.",
        "Repeat with a second client machine: if the throughput rises, the first was the limit.",
    ),
    "idle-clients": Rule(
        "caution",
        "Clients of a closed load were away part of the time: they started late, or the load generator was busy.",
        "State think_time_ms, leave out the warm-up, or give the generator more threads.",
    ),
    "scattered-repeats": Rule(
        "caution",
        "Repeats of the same load differ by more than is usual: something else changed between them.",
        "Repeat more often, and believe no difference between layouts that is smaller than this scatter.",
    ),
    "copied-run": Rule(
        "caution",
        "Two runs have the same figures to the last digit: one is a copy, and the repeats are fewer than they seem.",
        "Remove the copy.",
    ),
    "cold-and-warm": Rule(
        "caution",
        "Runs with cold and with warm caches stand side by side, and differ by more than their load.",
        "Compare and fit them apart; state cache_state in every row.",
    ),
    "growing-data": Rule(
        "caution",
        "The data grew while it was measured, so that the runs are not of the same system.",
        "Overwrite a fixed set of rows, load the data before the runs, or state data_gib in every row.",
    ),
    "failed-requests": Rule(
        "caution",
        "Failed requests are often faster or slower than others, and their latencies may be among these.",
        "Find out why they failed before the run is used.",
    ),
    "few-requests": Rule(
        "caution",
        "A high percentile rests on a few requests, and a repeat would find another.",
        "Run longer, or do not use that percentile.",
    ),
}
"""The rules by name, in the order of the report."""
