"""Exponents of published scale-outs: where the slopes are from, the prior they make, and what a fit may have seen."""

from __future__ import annotations

import json
import runpy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from capplan.calibration.tables.fit_table import fit_table
from capplan.calibration.tables.priors import EXPONENTS, exponent, unseen
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.layout.layout_factors import SHARED
from capplan.layout.table_components import LayoutFactors
from capplan.layout.table_rows import ON_CURVES
from capplan.systems.cassandra import SYSTEM

ROOT = Path(__file__).parents[3]
PUBLISHED = ROOT / "tests" / "published"
SCRIPT = runpy.run_path(str(ROOT / "docs" / "generate" / "scale_outs.py"))
SLOPES = pd.read_csv(PUBLISHED / "scale_outs.csv", comment="#")
OF_LAYOUTS = SYSTEM.component(LayoutFactors).log_sd["work"]
NAMES = ("node_exponent", "core_exponent")


class Measured(NamedTuple):
    """Rows of a table whose nodes and cores grow, and what their throughput is known to.

    `kept` are the values of columns of these rows. `repeats` are averaged in a row, and `reading` is the error of a
    figure that was read from a picture.
    """

    table: str
    workload: str
    axes: tuple[str, ...]
    kept: Mapping[str, Any] = MappingProxyType({})
    repeats: int = 1
    reading: float = 0.0

    def rows(self) -> pd.DataFrame:
        found = LOAD_TESTS.read(PUBLISHED / "load_tests" / f"{self.table}.csv")
        for column, value in self.kept.items():
            found = found[found[column] == value]
        return found


SHARES = {"75 % reads": 0.75, "reads": 1.0, "inserts": 0.0}
MEASURED = (
    Measured("cassandra_netflix_2011", "writes", ("nodes",)),
    Measured("cassandra_endpoint_2015", "reads and writes", ("nodes",), repeats=3, reading=1848),
    *(
        Measured(
            "cassandra_instaclustr_2015", workload, (axis,), {"read_fraction": share, "version": machines}, repeats=2
        )
        for workload, share in SHARES.items()
        for axis, machines in (("nodes", "2.1.7 on m3"), ("cores", "2.1.7 on i2"))
    ),
    *(
        Measured(f"rabbitmq_{queue}_{disk}", f"{queue} queues on {disk}", ("nodes", "cores"))
        for queue in ("quorum", "mirrored")
        for disk in ("io1", "gp2", "st1")
    ),
)


@pytest.mark.parametrize("one", MEASURED, ids=lambda one: f"{one.table} {one.workload} {one.axes[0]}")
def test_slopes_are_those_of_the_tables(one: Measured) -> None:
    """By generalised least squares, as the head of the table of slopes says; errors grow with the misfit."""
    rows = one.rows()
    logs = np.log(rows[["cass_nodes", "node_cores"]].astype(float).to_numpy())
    doublings = np.abs(logs[:, None] - logs[None]).sum(axis=-1) / np.log(2)
    rates = rows.throughput_tps.astype(float).to_numpy()
    noise = ON_CURVES**2 / one.repeats + (one.reading / rates) ** 2
    inverse = np.linalg.inv(OF_LAYOUTS**2 * SHARED**doublings + np.diag(noise))
    design = np.column_stack([np.ones(len(rows)), logs[:, [("nodes", "cores").index(axis) for axis in one.axes]]])
    covariance = np.linalg.inv(design.T @ inverse @ design)
    found = covariance @ design.T @ inverse @ np.log(rates)
    left, freedom = np.log(rates) - design @ found, len(rows) - design.shape[1]
    wider = max(1.0, float(left @ inverse @ left) / freedom) ** 0.5 if freedom else 1.0
    for at, axis in enumerate(one.axes, 1):
        source = str(rows.source.iloc[0])
        own = SLOPES[(SLOPES.axis == axis) & (SLOPES.workload == one.workload)]
        (slope,) = own[[source.startswith(each) for each in own.source]].itertuples()
        assert slope.slope == pytest.approx(found[at], abs=0.006)
        assert slope.error == pytest.approx(wider * covariance[at, at] ** 0.5, abs=0.006)


def test_the_priors_are_those_of_the_table() -> None:
    assert json.loads(EXPONENTS.read_text(encoding="utf-8")) == SCRIPT["priors"](SLOPES), "uv run just scale-outs"


@pytest.mark.parametrize("study", sorted(set(SLOPES.source)))
def test_a_prior_without_a_study_does_not_change_with_its_slopes(study: str) -> None:
    other = SLOPES.assign(slope=SLOPES.slope.where(SLOPES.source != study, 5.0))
    for axis, priors in SCRIPT["priors"](other).items():
        kept = json.loads(EXPONENTS.read_text(encoding="utf-8"))[axis]
        if study in priors:
            assert priors[study] == kept[study]
            assert priors[""] != kept[""]


@pytest.mark.parametrize("table", sorted(path.stem for path in (PUBLISHED / "load_tests").glob("*.csv")))
def test_no_published_table_is_fitted_with_a_prior_that_has_seen_it(table: str) -> None:
    """A table of a study in the priors gets those without it; any other one gets those of all studies."""
    rows = list(LOAD_TESTS.rows(LOAD_TESTS.read(PUBLISHED / "load_tests" / f"{table}.csv")))
    scaled = {"cassandra_netflix", "cassandra_endpoint", "cassandra_instaclustr", "rabbitmq"}
    seen = [study for study in SLOPES.source.unique() if any((row.source or "").startswith(study) for row in rows)]
    assert bool(seen) == table.startswith(tuple(scaled))
    kept = json.loads(EXPONENTS.read_text(encoding="utf-8"))
    usual = [exponent(name) for name in NAMES]
    for axis, before, now in zip(("nodes", "cores"), usual, unseen(usual, [row.source for row in rows]), strict=True):
        expected = kept[axis][seen[0]] if seen and seen[0] in kept[axis] else kept[axis][""]
        assert [now.value, now.log_sd] == expected
        assert before.value == kept[axis][""][0]


def test_a_fit_takes_the_prior_without_the_study_of_its_rows() -> None:
    """One row of one layout tells nothing of exponents, so that their draws are those of the prior."""
    row = LoadTestRow(
        run_id="1",
        cass_nodes=3,
        node_cores=8,
        rf=3,
        read_fraction=0.0,
        load_kind="closed",
        clients=8,
        throughput_tps=9e3,
    )
    kept = json.loads(EXPONENTS.read_text(encoding="utf-8"))["nodes"]
    study = str(SLOPES.source.iloc[0])
    fitted = fit_table(SYSTEM, [replace(row, source=f"{study}, 2011")])
    logs = np.log(np.asarray(fitted.values(SYSTEM.parameters)["node_exponent"]))
    assert np.exp(np.median(logs)) == pytest.approx(kept[study][0], rel=0.01)
    assert logs.std() == pytest.approx(kept[study][1], rel=0.05)


def test_the_next_exponent_is_predicted_with_the_scatter_of_those_that_are_known_well() -> None:
    """Many exact slopes: the next has their mean and standard deviation."""
    slopes = 0.9 + 0.1 * np.random.default_rng(1).standard_normal(60)
    mean, sd = SCRIPT["predictive"](slopes, np.full(60, 0.02), [str(each) for each in range(60)])
    assert mean == pytest.approx(slopes.mean(), abs=0.01)
    assert sd == pytest.approx(slopes.std(), rel=0.15)


def test_what_tables_of_one_study_share_is_counted_once() -> None:
    """Two studies of many tables each say less of the mean than as many studies of one table."""
    slopes, errors = np.repeat([0.8, 1.0], 10), np.full(20, 0.05)
    _, shared = SCRIPT["predictive"](slopes, errors, ["one"] * 10 + ["other"] * 10)
    _, apart = SCRIPT["predictive"](slopes, errors, [str(each) for each in range(20)])
    assert shared > 1.2 * apart
