"""Identifiability: what the fitted rows leave undetermined in a prediction, and which row would determine it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from capplan.calibration.tables.errors import chance_errors
from capplan.calibration.tables.solved_rows import Solved, solved_rows
from capplan.layout.components import Machines
from capplan.layout.fitted_file import Fitted
from capplan.layout.table_components import Contention, NodeCpu, Rows
from capplan.layout.table_rows import NODE_CPU, TableRow, rows_of
from capplan.layout.table_system import TableSystem
from capplan.models.language.parameter import defaults
from capplan.models.language.units import Number

UNDETERMINED = "not identifiable from these rows: "
"""How a reason begins."""
DECIDED = 0.5
"""How far data must have narrowed the logarithm of a ceiling, as a share of the prior's spread."""
_NEAR = 0.7  # utilisation from which a figure depends on the ceiling
_BOUND = 0.7  # utilisation from which a tier has shown its service demand
_MOVED = 0.1  # by chance in a run, from which a percentile is not identifiable: standard deviation of its logarithm
_LEVELS = 3  # of a count, from which rows show how figures change beyond them: two fit any law
_CLIENTS = "clients"
_MORE = 1.5  # times the most clients of the rows, up to which these say how figures change with clients
_LIKELY = 0.2  # probability that a tier limits a row, from which it matters


def decided(fitted: Fitted) -> dict[str, float]:
    """Return how well the rows determine each parameter: 1 - posterior over prior standard deviation (logarithms)."""
    logs, priors = np.log(np.array(fitted.draws)), fitted.its_table.priors
    return {
        name: float(max(1 - logs[:, at].std() / priors[name][1], 0.0))
        for at, name in enumerate(fitted.names)
        if name in priors  # not the factors of single layouts
    }


class Judge:
    """Judges which predictions the fitted rows do not determine."""

    def __init__(self, system: TableSystem[Any], fitted: Fitted) -> None:
        self.system, self.fitted = system, fitted

    @cached_property
    def trained(self) -> tuple[TableRow, ...]:
        """The fitted rows."""
        return self.system.read(rows_of(self.fitted))

    @cached_property
    def _middle(self) -> dict[str, Number]:
        """One value of each parameter."""
        return {**defaults(self.system.parameters), **self.fitted.middle()}

    @cached_property
    def _busiest(self) -> dict[str, float]:
        """The highest utilisation of each kind of station in the fitted rows."""
        found: dict[str, float] = {}
        for each in solved_rows(self.system, self.trained, self._middle, [[] for _ in self.trained]):
            for name, busy in each.busy.items():
                found[name] = max(found.get(name, 0.0), float(np.median(busy)))
        return found

    def reason(self, row: TableRow, solved: Solved) -> str:
        """Return why a row is not identifiable, and which row would make it so; empty if it is identifiable.

        No row is named where this one was measured: it is the row that would.
        """
        found = (
            self.system.component(Rows).undecided(row, self.trained)
            or self._tier(row, solved)
            or self._beyond(row)
            or self._ceiling(row, solved)
            or self._retrograde(row, solved)
        )
        why = found.partition("; ")[0] if row.measured else found  # which row would stands behind the semicolon
        return f"{UNDETERMINED}{why}" if found else ""

    def by_chance(self, rows: Sequence[TableRow], names: Sequence[Sequence[str]]) -> dict[tuple[int, str], str]:
        """Return, by number of the row and column, why percentiles that chance moves far are not identifiable."""
        wanted = [(number, name) for number, own in enumerate(names) for name in own]
        errors = chance_errors(self.system, rows, wanted, self._middle)
        return {
            each: f"{UNDETERMINED}chance moves this percentile by {error:.0%} between runs of "
            "10,000 requests, as few requests take about as long; ask for a higher or a lower one"
            for each, error in zip(wanted, errors, strict=True)
            if error > _MOVED
        }

    def _beyond(self, row: TableRow) -> str:
        """Return a reason if a count lies beyond those of the fitted rows, and these have fewer than three."""
        known = [_counts(self.system, each) for each in self.trained]
        for what, own in _counts(self.system, row).items():
            levels = sorted({each[what] for each in known if what in each})
            if not levels or len(levels) >= _LEVELS:
                continue
            few_clients = what == _CLIENTS and own <= _MORE * levels[-1]
            if not few_clients and not levels[0] <= own <= levels[-1]:
                had = " or ".join(f"{each:g}" for each in levels)
                one = f"a row with {own:g}" if own == int(own) else "a row of this layout"
                helps = what == _CLIENTS or self._responds(row.layout)
                return f"all had {had} {what}" + (f"; {one} would decide how figures change with them" if helps else "")
        return ""

    def _responds(self, layout: Any) -> bool:
        """Whether an axis on which a layout lies outside the fitted ones changes a figure: else no row tells more."""
        system = self.system.of(self.fitted)
        moved = system.responses(self.fitted, layout, system.extrapolation(layout))
        return any(doublings for figures in moved.values() for doublings in figures.values())

    def _tier(self, row: TableRow, solved: Solved) -> str:
        """Return a reason if the row is limited by a tier that limited no fitted row."""
        names = list(solved.busy)
        busy = np.stack(np.broadcast_arrays(*(solved.busy[name] for name in names)))
        first = np.argmax(busy, axis=0)
        fitted = NODE_CPU in self.fitted.its_table.scatter
        metered = [each.tested_layout for each in self.trained if fitted and NODE_CPU in each.measured]
        for at, name in enumerate(names):
            if name in self.system.component(NodeCpu).metered and row.tested_layout in metered:
                continue  # its CPU says how far its limit is, and `_ceiling` how well
            limits, most = float(np.mean((first == at) & (busy[at] > _NEAR))), self._busiest.get(name, 0.0)
            if limits > _LIKELY and most < _BOUND and len(self._busiest) > 1:
                return (
                    f"{name} may be the limit here and was at most {most:.0%} busy in them; a row that drives it to "
                    "its limit would decide it"
                )
        return ""

    def _ceiling(self, row: TableRow, solved: Solved) -> str:
        """Return a reason if the row comes near a ceiling of its layout that the rows do not determine."""
        if _most_busy(solved) < _NEAR:
            return ""
        after = float(np.log(solved.capacity_per_s).std())
        if after < 0.05 or self._decides(row, after):
            return ""
        most = max((each.load.clients for each in self.trained if each.tested_layout == row.tested_layout), default=0)
        more = (
            f"a row of this layout with {max(2 * most, row.load.clients)} or more clients"
            if row.load.clients
            else "a row of this layout near its highest rate"
        )
        return f"the ceiling is decided to less than half; {more} would decide it"

    def _decides(self, row: TableRow, after: float) -> bool:
        random = np.random.default_rng(self.fitted.seed)
        drawn = {
            name: median * np.exp(sd * random.standard_normal(128))
            for name, (median, sd) in self.fitted.its_table.priors.items()
        }
        prior = solved_rows(self.system, [row], {**defaults(self.system.parameters), **drawn}, [[]])[0]
        before = float(np.log(prior.capacity_per_s).std())
        return 1 - after / max(before, 1e-12) >= DECIDED

    def _retrograde(self, row: TableRow, solved: Solved) -> str:
        """Return a reason if throughput may fall at many more clients than were measured."""
        if row.load.kind != "closed":
            return ""
        most = max((each.load.clients for each in self.trained if each.load.kind == "closed"), default=0)
        if (
            self.system.component(Contention).may_fall(self._middle)
            or row.load.clients <= _MORE * most
            or _most_busy(solved) < 0.9
        ):
            return ""
        return (
            f"throughput may fall beyond {most} clients, and no row shows whether; a row with {row.load.clients} "
            "clients would decide it"
        )


def _counts(system: TableSystem[Any], row: TableRow) -> dict[str, float]:
    """Return a row's machines, cores and replicas by name, per data centre, and its clients.

    A tier without machines has no cores, and open traffic no clients.
    """
    layout, found = row.layout, dict[str, float]()
    dcs, each = getattr(layout, "dcs", 1), " per DC" if hasattr(layout, "dcs") else ""
    for kind, count in system.component(Machines).counts(layout).items():
        machine = system.component(Machines).kinds[kind]
        found[f"{machine.name}s{each}"] = count / dcs
        if machine.cores and count:
            found[f"cores on each {machine.name}"] = getattr(layout, machine.cores)
    clients = {_CLIENTS: row.load.clients} if row.load.kind == "closed" else {}
    return {**found, f"replicas of a row{each}": system.component(Rows).copies(layout) / dcs, **clients}


def _most_busy(solved: Solved) -> float:
    """Return the median utilisation of the busiest station."""
    return float(np.median(np.max(np.stack(np.broadcast_arrays(*solved.busy.values())), axis=0)))
