"""Checks of the evidence about `vcider`: averages, what its document claims, and how its cells scatter.

A cell is the mean of ten trials. The document does not print their spread, so the repeatability of a cell is estimated
from the scatter of cells over column widths. Intervals of scatter are its 90 % intervals, not those of the rounding.

`Cells` are the 15 cells of a replication factor: five column widths relative to native without encryption, then
relative to native with node encryption, then to native with client and node encryption.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import chdtri, fdtri, stdtrit

from capplan.evidence.audit.checks import Claim, Figure, Figures, Findings, Law, Reading, figure, total
from capplan.evidence.interval import Interval
from capplan.models.language.units import FloatArray

Cells: TypeAlias = tuple[Figure, ...]

FACTORS = {"r1": "R1", "r3": "R3"}
REFERENCES = {
    "none": "native without encryption",
    "internode": "native with node encryption",
    "both": "native with client and node encryption",
}
LEVEL = 0.9
"""Level of every interval of scatter: 5 % are below and 5 % above it."""
TAIL = (1 - LEVEL) / 2
SHARED = 0.5
"""Correlation of two ratios that share their numerator, if it varies as much as their denominators."""
SLOPE_PER_BYTES = 100.0
"""Column width, in bytes, that slopes are per."""


def checks(figures: Figures) -> Findings:
    """Yield the checks of the document."""
    yield from averages(figures)
    for claim in (repeated, slower_and_better, client_encryption, kernel, untested):
        yield from claim(figures)
    for reading in (repeatability, column_widths, shared_runs, change_with_replicas, costs):
        yield from reading(figures)


def comparison(figures: Figures, factor: str, reference: str) -> Cells:
    """Return the cells of a replication factor relative to one reference."""
    return figures.like(f"{factor}.{reference}.c*")


def cells_of(figures: Figures, factor: str) -> Cells:
    """Return all cells of a replication factor."""
    return tuple(cell for reference in REFERENCES for cell in comparison(figures, factor, reference))


def percent(ratio: Figure) -> str:
    """Return how much a ratio is above one, as text."""
    return f"{(ratio.value - 1) * 100:+.3g} %"


# ---- Arithmetic and operational laws


def averages(figures: Figures) -> Findings:
    """Yield the laws about averages: cells scatter by more than the steps between them."""
    for factor, name in FACTORS.items():
        for reference, words in REFERENCES.items():
            cells = comparison(figures, factor, reference)
            yield Law(f"average.{factor}.{reference}", "an average is the mean of its cells").compare(
                mean := total(cells) * (1 / len(cells)),
                average := figures[f"{factor}.{reference}.average"],
                f"{name} over {words}: the mean of the five cells is {percent(mean)}, a ratio of {mean}; the document "
                f"says {percent(average)}, {average}.",
            )
    for factor, name in FACTORS.items():  # holds if the virtual network does the same in each comparison
        for less, more in (("none", "internode"), ("internode", "both")):
            yield Law(f"added_work.{factor}.{more}", "added work makes no cluster faster").compare(
                expected := figures[f"{factor}.{less}.average"].or_more,
                documented := figures[f"{factor}.{more}.average"],
                f"{name}: over {REFERENCES[more]} the ratio should be {expected}, as over {REFERENCES[less]}; it is "
                f"{documented}.",
            )


# ---- What the document says about its own figures


def repeated(figures: Figures) -> Findings:
    """Yield the claims that repeat an average."""
    for name, row, factor, words in (
        ("nearly", "r1.both.nearly", "r1", "The text gives a gain of nearly 60 %"),
        ("r3", "r3.both.repeated", "r3", "The text gives a gain of 30 % with R3"),
        ("from", "all.gain_from", "r3", "The recommendation gives a gain of at least 30 %"),
        ("to", "all.gain_to", "r1", "The recommendation gives a gain of up to 60 %"),
    ):
        yield Claim(f"duplicate.{name}", "one experiment has one result").compare(
            expected := figures[row],
            documented := figures[f"{factor}.both.average"],
            f"{words}, a ratio of {expected}; the average is {documented}.",
        )


def slower_and_better(figures: Figures) -> Findings:
    """Yield the claims of what is slower than native without encryption, and better than with node encryption."""
    slower, law = figures["all.slower"], "without encryption the virtual network is slower"
    for factor, name in FACTORS.items():
        yield Claim(f"claim.slower.{factor}", law).compare(
            expected := figure(1).or_less,
            documented := figures[f"{factor}.none.average"],
            f"Slower than native without encryption means a ratio of {expected}; the average of {name} is "
            f"{documented}.",
            slower,
        )
    cells = comparison(figures, "r1", "none") + comparison(figures, "r3", "none")
    most = max(cells, key=lambda cell: cell.value)
    yield Claim("claim.slower.cells", law).compare(
        figure(1).or_less,
        most,
        "The document says that the virtual network is slower without encryption. In "
        f"{sum(cell.interval.low > 1 for cell in cells)} of {len(cells)} cells it is faster, by {percent(most)} with "
        f"columns of {most.cell('column_bytes').written} bytes, which is within the scatter of the cells.",
        slower,
    )
    better, law = figures["all.node_only_better"], "over node encryption alone the virtual network is better"
    for factor, name in FACTORS.items():
        yield Claim(f"claim.node_only.{factor}", law).compare(
            expected := figure(1).or_more,
            documented := figures[f"{factor}.internode.average"],
            f"Better than native with node encryption means a ratio of {expected}; the average of {name} is "
            f"{documented}.",
            better,
        )
    cells = comparison(figures, "r1", "internode") + comparison(figures, "r3", "internode")
    least = min(cells, key=lambda cell: cell.value)
    yield Claim("claim.node_only.cells", law).compare(
        figure(1).or_more,
        least,
        "The document says that the virtual network is better than node encryption alone. In "
        f"{sum(cell.interval.high < 1 for cell in cells)} of {len(cells)} cells it is slower, by {percent(least)} "
        f"with columns of {least.cell('column_bytes').written} bytes.",
        better,
    )


def client_encryption(figures: Figures) -> Findings:
    """Yield the claims about the client's share of the gain, and R3 against R1."""
    for factor, name in FACTORS.items():
        both = figures[f"{factor}.both.average"]
        yield Claim(f"claim.client_mostly.{factor}", "the gain is mostly the client's encryption").compare(
            expected := figures["all.client_mostly"],
            documented := (both - figures[f"{factor}.internode.average"]) / (both - 1),
            f"{name}: the document says that the gain over encrypted native is mostly the client's encryption, a "
            f"share of {expected}. Less the gain over node encryption alone, a share of {documented} is left.",
        )
    loss, gain = "R3 loses more without encryption", "R3 gains more with encryption"
    for name, law, words, reference, over in (
        ("loss_grows", loss, "the loss without encryption", "none", "native without encryption"),
        ("gain_grows.both", gain, "the gain with encryption", "both", "native with both encrypted"),
        ("gain_grows.internode", gain, "the gain with encryption", "internode", "native with node encryption alone"),
    ):
        one, three = figures[f"r1.{reference}.average"], figures[f"r3.{reference}.average"]
        yield Claim(f"claim.{name}", law).compare(
            expected := figures[f"all.{name.split('.')[0]}"],
            documented := three - one,
            f"The document says that {words} grows with R3, a change of {expected}; over {over} it goes from "
            f"{percent(one)} to {percent(three)}, {documented}.",
        )


def kernel(figures: Figures) -> Findings:
    """Yield the claims about both kinds of user space: OpenVPN, and Cassandra's own."""
    law = "encryption in the kernel gains dramatically over user space"
    for factor, name in FACTORS.items():
        for reference, words in (
            ("both", "clients' OpenVPN and Cassandra's own encryption"),
            ("internode", "Cassandra's own encryption alone, which is in user space too,"),
        ):
            yield Claim(f"claim.kernel.{factor}.{reference}", law).compare(
                expected := figures["all.kernel_dramatic"],
                average := figures[f"{factor}.{reference}.average"],
                f"{name}: a dramatic gain of the kernel over user space means a ratio of {expected}; over {words} the "
                f"gain is {percent(average)}.",
                figures["all.virtual_network"],
                figures["all.third_party"],
            )


def untested(figures: Figures) -> Findings:
    """Yield the claims that no figure speaks to."""
    yield Claim("claim.regions", "several regions are like one").compare(
        expected := figures["all.regions_alike"],
        None,
        f"The document expects several regions to show {expected} times the ratios of one region; it measured one "
        "region.",
    )
    variability = figures["all.variability"]
    yield Claim("claim.variability", "performance on EC2 varies").compare(
        expected := figures["all.trials"],
        None,
        f"The document calls the variability of EC2 {variability.written}; it prints no spread of the {expected} "
        "trials.",
        variability,
    )


# ---- Readings that the document leaves open: how cells scatter, and what its comparisons have in common


def repeatability(figures: Figures) -> Findings:
    """Yield the readings of how cells of one comparison scatter."""
    for factor, name in FACTORS.items():
        constant, line = (of(cells_of(figures, factor)) for of in (deviation, deviation_around_lines))
        yield Reading(f"scatter.{factor}", "cells scatter around a constant as around a line").compare(
            constant,
            line,
            f"{name}: around a constant for each comparison a cell has a standard deviation of {constant * 100:.1f} "
            f"points ({constant.interval.low * 100:.1f} to {constant.interval.high * 100:.1f}), around a line one of "
            f"{line * 100:.1f} points. The line explains nothing.",
        )
    one, three = (cells_of(figures, factor) for factor in FACTORS)
    yield Reading("scatter.one", "both replication factors are equally repeatable").compare(
        expected := deviation_if_as(three, one),
        documented := deviation(one).printed,
        f"If R1 repeated as well as R3 ({deviation(three) * 100:.1f} points), it would show "
        f"{expected.interval.low * 100:.1f} to {expected.interval.high * 100:.1f} points; it shows "
        f"{documented * 100:.1f} points.",
    )


def column_widths(figures: Figures) -> Findings:
    """Yield the readings of a trend over column widths."""
    for factor, name in FACTORS.items():
        cells = cells_of(figures, factor)
        for reference, words in REFERENCES.items():
            yield Reading(f"slope.{factor}.{reference}", "the column width does not matter").compare(
                slope_by_chance(cells),
                documented := slope(cells, comparison(figures, factor, reference)),
                f"{name} over {words}: {documented * 100:+.1f} points per 100 bytes, standard error "
                f"{slope_error(cells) * 100:.1f}.",
            )


def shared_runs(figures: Figures) -> Findings:
    """Yield the readings of whether one run on the virtual network served all three comparisons.

    Cells of one column would then go up and down together.
    """
    for factor, name in FACTORS.items():
        cells = cells_of(figures, factor)
        for runs, words, allowed in (
            ("independent", "runs of its own for each comparison", column_effect_if_independent(cells)),
            ("shared", "one run for all comparisons", column_effect_if_shared(cells)),
        ):
            yield Reading(f"runs.{runs}.{factor}", f"the virtual network had {words}").compare(
                allowed,
                documented := column_effect(cells),
                f"{name}: with {words}, cells of one column width have an F statistic of {allowed.interval.low:.2g} "
                f"to {allowed.interval.high:.2g}; they have {documented:.2g}.",
            )


def change_with_replicas(figures: Figures) -> Findings:
    """Yield the readings of what changes from R1 to R3."""
    one, three = (cells_of(figures, factor) for factor in FACTORS)
    chance = change_by_chance(one, three)
    for reference, words in REFERENCES.items():
        before, after = mean_ratio(figures, "r1", reference), mean_ratio(figures, "r3", reference)
        yield Reading(f"change.{reference}", "R1 and R3 differ by no more than their scatter").compare(
            chance,
            documented := after.printed - before.printed,
            f"From R1 to R3 the average over {words} changes by {documented * 100:+.1f} points; scatter alone "
            f"explains up to {chance.interval.high * 100:.1f} points.",
        )


def costs(figures: Figures) -> Findings:
    """Yield the readings of what encryption costs, if the virtual network's work is the same in every comparison."""
    plain, node, client = {}, {}, {}
    for factor in FACTORS:
        plain[factor], node[factor], both = (mean_ratio(figures, factor, reference) for reference in REFERENCES)
        client[factor] = (both - node[factor]) / plain[factor]  # what clients add beyond nodes
    yield Reading("cost.client", "client encryption costs the same at every replication factor").compare(
        expected := figure(Interval(2, 1, 3)),
        documented := client["r1"] / client["r3"],
        f"Client encryption adds {client['r1']:.2f} of a plain operation with R1 and {client['r3']:.2f} with R3. If "
        f"the work is the same, an operation with R3 costs {documented} times one with R1; the work of one to three "
        f"replicas is {expected}.",
    )
    cost = {factor: node[factor] / plain[factor] - 1 for factor in FACTORS}
    yield Reading("cost.node", "node encryption costs the same for each remote replica").compare(
        expected := cost["r1"] * 3 / (client["r1"] / client["r3"]),
        documented := cost["r3"].printed,
        f"Node encryption adds {cost['r1']:.3f} of a plain operation with R1. With R3 there are three times the "
        f"remote replicas and a larger operation, so it should add {expected}; it adds {documented}.",
    )


def mean_ratio(figures: Figures, factor: str, reference: str) -> Figure:
    """Return the mean of a comparison's cells with the interval of its scatter."""
    return mean_of(cells_of(figures, factor), comparison(figures, factor, reference))


# ---- The scatter of cells


@dataclass(frozen=True)
class Scatter:
    """Residual scatter of the cells of a replication factor around a constant, or a line, for each comparison.

    Attributes
    ----------
    deviation : float
        Standard deviation of a cell, as a ratio.
    freedom : int
        Its degrees of freedom.
    slope_error : float
        Standard error of the slope of a comparison, per byte of column width.
    """

    deviation: float
    freedom: int
    slope_error: float

    def around(self, value: float, error: float) -> Interval:
        """Return the interval of Student's t around `value` for the standard error `error`."""
        width = float(stdtrit(self.freedom, 1 - TAIL)) * error
        return Interval(value, value - width, value + width)


def ratios(cells: Cells) -> FloatArray:
    """Return the cells as an array, by comparison and column width."""
    return np.array([cell.value for cell in cells]).reshape(len(REFERENCES), -1)


def centred_widths(cells: Cells) -> FloatArray:
    """Return the column widths of one comparison's cells minus their mean, bytes."""
    widths = np.array([cell.cell("column_bytes").value for cell in cells[: len(cells) // len(REFERENCES)]])
    centred: FloatArray = widths - widths.mean()
    return centred


def slopes(cells: Cells) -> FloatArray:
    """Return the slope of each comparison over column width by least squares, per byte."""
    table, centred = ratios(cells), centred_widths(cells)
    slope: FloatArray = (table - table.mean(axis=1, keepdims=True)) @ centred / (centred @ centred)
    return slope


def scatter(cells: Cells, line: bool = False) -> Scatter:
    """Estimate the scatter of a cell around a constant or a line for each comparison, pooled over the three."""
    table, centred = ratios(cells), centred_widths(cells)
    residuals = table - table.mean(axis=1, keepdims=True)
    if line:
        residuals = residuals - np.outer(slopes(cells), centred)
    freedom = table.size - len(table) * (2 if line else 1)
    deviation = float(np.sqrt((residuals**2).sum() / freedom))
    return Scatter(deviation, freedom, deviation / float(np.sqrt(centred @ centred)))


def deviation(cells: Cells) -> Figure:
    """Return the standard deviation of a cell around a constant for each comparison, with its chi-squared interval."""
    spread = scatter(cells)
    low, high = (
        spread.deviation * float(np.sqrt(spread.freedom / chdtri(spread.freedom, tail))) for tail in (TAIL, 1 - TAIL)
    )
    return figure(Interval(spread.deviation, low, high), *cells)


def deviation_around_lines(cells: Cells) -> Figure:
    """Return the standard deviation of a cell around a line for each comparison."""
    return figure(scatter(cells, line=True).deviation, *cells)


def deviation_if_as(others: Cells, cells: Cells) -> Figure:
    """Return the standard deviation that `cells` would have with the repeatability of `others` (F distribution)."""
    reference, compared = scatter(others), scatter(cells)
    bound = float(fdtri(compared.freedom, reference.freedom, 1 - TAIL)) ** 0.5
    allowed = Interval(reference.deviation, reference.deviation / bound, reference.deviation * bound)
    return figure(allowed, *others, *cells)


def slope(cells: Cells, comparison: Cells) -> Figure:
    """Return the slope of the five cells of one comparison over column width, per 100 bytes."""
    place = cells.index(comparison[0]) // len(comparison)
    return figure(float(slopes(cells)[place]) * SLOPE_PER_BYTES, *cells)


def slope_error(cells: Cells) -> float:
    """Return the standard error of a comparison's slope, pooled over the three comparisons, per 100 bytes."""
    return scatter(cells, line=True).slope_error * SLOPE_PER_BYTES


def slope_by_chance(cells: Cells) -> Figure:
    """Return the slopes per 100 bytes that scatter alone would cause."""
    return figure(scatter(cells, line=True).around(0.0, slope_error(cells)), *cells)


def mean_of(cells: Cells, comparison: Cells) -> Figure:
    """Return the mean of a comparison's five cells, with the interval that the scatter of all cells implies."""
    spread, mean = scatter(cells), float(np.mean([cell.value for cell in comparison]))
    return figure(spread.around(mean, spread.deviation / len(comparison) ** 0.5), *cells)


def change_by_chance(cells: Cells, others: Cells) -> Figure:
    """Return the difference between the means of two replication factors by scatter alone (Welch's t)."""
    spreads = [scatter(each) for each in (cells, others)]
    parts = [each.deviation**2 / (len(cells) // len(REFERENCES)) for each in spreads]
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / spreads[0].freedom + parts[1] ** 2 / spreads[1].freedom)
    width = float(stdtrit(freedom, 1 - TAIL)) * sum(parts) ** 0.5
    return figure(Interval(0.0, -width, width), *cells, *others)


def column_effect(cells: Cells) -> Figure:
    """Return the F statistic of the effect of column width (two-way analysis of variance)."""
    table = ratios(cells)
    residuals = table - table.mean(axis=1, keepdims=True)
    between, within = _freedoms(cells)
    common = len(table) * float((residuals.mean(axis=0) ** 2).sum())
    return figure(common / between / ((float((residuals**2).sum()) - common) / within), *cells)


def column_effect_if_independent(cells: Cells) -> Figure:
    """Return the F statistics of independent cells: about one."""
    return figure(Interval(1.0, 0.0, float(fdtri(*_freedoms(cells), 1 - TAIL))), *cells)


def column_effect_if_shared(cells: Cells) -> Figure:
    """Return the F statistics if the three comparisons of a column width share one run on the virtual network."""
    low, high = (float(fdtri(*_freedoms(cells), tail)) for tail in (TAIL, 1 - TAIL))
    allowed = Interval(1.0, low, high) * ((1 + SHARED * (len(REFERENCES) - 1)) / (1 - SHARED))
    return figure(allowed, *cells)


def _freedoms(cells: Cells) -> tuple[int, int]:
    comparisons, columns = ratios(cells).shape
    return columns - 1, (columns - 1) * (comparisons - 1)
