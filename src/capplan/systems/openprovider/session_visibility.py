"""How likely an interim message finds no session: it reached another data centre before the row of the start did.

The levels asked for come first, then others for comparison. A figure is the median over parameter draws of the sampled
probability. Its band has what the parameters leave open, the discrepancy of times (all times of machines are off by
one factor, the ways between data centres are not), and the error of the sampling.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from functools import cached_property

import numpy as np

from capplan.calibration.case.ensemble import Places, at_draws, spaced
from capplan.calibration.case.solution import Figures, kind_of
from capplan.calibration.case.uncertainty import HIGH, LOW
from capplan.calibration.system import Case
from capplan.models.cassandra.cluster import LOCAL_READ_REPAIR_CHANCE, Cluster, Costs
from capplan.models.cassandra.encryption import Exchanges
from capplan.models.cassandra.visibility import Load, Question, Sampling, chances_not_found
from capplan.models.language.parameter import Values
from capplan.models.language.units import FloatArray, Number
from capplan.models.results import LEAST_PROBABILITY, Band, Parts, SessionNotFound, rounded
from capplan.models.solver.operating_point import MAX_DROP_RATE, phases
from capplan.systems.openprovider.network import CASSANDRA_CORES, MESSAGES, UPDATES, build_cluster, build_costs
from capplan.systems.openprovider.scenario import OpenproviderScenario

OTHERS = (  # levels of reads and writes to compare with: weaker, as weak, and two that always find the row
    ("LOCAL_ONE", "QUORUM"),
    ("LOCAL_QUORUM", "LOCAL_QUORUM"),
    ("LOCAL_QUORUM", "QUORUM"),
    ("LOCAL_QUORUM", "EACH_QUORUM"),
    ("QUORUM", "QUORUM"),
)
GAPS_S = (0.0, 5e-3, 50e-3)  # beside the documented one and the round trip: the document speaks of a few milliseconds
_READS = (1 + UPDATES) / MESSAGES  # of a request: every message but the start reads
_DRAWS = 64  # of the ensemble: enough for the ends of a band
_MUTATIONS = 250_000  # that are sampled for each pair of levels, whatever the size of the cluster
_BATCHES = 10
_T95 = 1.8331129326562368  # 95th percentile of Student's t law, 9 degrees of freedom

Levels = tuple[str, str]
"""Consistency levels of reads and of writes."""


def sessions_not_found(case: Case[OpenproviderScenario], figures: Figures) -> tuple[SessionNotFound, ...]:
    """Return the probability by consistency levels and gap; nothing with one data centre, or beyond capacity.

    Levels whose reads the cores would not carry at the offered rate are left out, but for those asked for.

    Parameters
    ----------
    case : Case
        The layout of `openprovider`, its parameters and the discrepancy.
    figures : Figures
        The solved layout at the offered rate.
    """
    sampled = _Sampled(case, figures)
    return tuple(row for levels in compared(case, figures)[0] for row in sampled.rows(levels))


def compared(case: Case[OpenproviderScenario], figures: Figures) -> tuple[tuple[Levels, ...], tuple[Levels, ...]]:
    """Return the levels that are looked at, those of the scenario first, and those left out as too heavy."""
    if case.scenario.dcs == 1 or float(np.median(figures.point.drop_rate)) > MAX_DROP_RATE:
        return (), ()
    own, sampled = (case.scenario.consistency_read, case.scenario.consistency_write), _Sampled(case, figures)
    others = tuple(levels for levels in OTHERS if levels != own)
    heavy = tuple(levels for levels in others if float(np.median(sampled.load(levels[0]).utilisation[-1])) >= 1)
    return (own, *(levels for levels in others if levels not in heavy)), heavy


@dataclass(frozen=True)
class _Sampled:
    """A layout at its offered rate, at a few draws of its parameters."""

    case: Case[OpenproviderScenario]
    figures: Figures

    @property
    def scenario(self) -> OpenproviderScenario:
        """The layout."""
        return self.case.scenario

    @cached_property
    def chosen(self) -> Places:
        """Which draws, evenly over the ensemble."""
        return spaced(self.figures.analysis.draws, _DRAWS)

    @cached_property
    def values(self) -> Values:
        """Parameter values at these draws."""
        return at_draws(self.case.values, self.chosen)

    @cached_property
    def sampling(self) -> Sampling:
        """How much is sampled."""
        draws, replicas = len(self.chosen), self.scenario.dcs * self.scenario.rf
        each = max(_MUTATIONS // (draws * replicas * _BATCHES), 4)
        return Sampling(draws, each * _BATCHES, self.case.uncertainty.seed)

    @cached_property
    def factor(self) -> FloatArray:
        """What all times of machines are off by, draw by draw: the discrepancy, its levels in an order of their own."""
        draws, known = len(self.chosen), self.case.uncertainty
        levels = (np.random.default_rng([known.seed, 3]).permutation(draws) + 0.5) / draws
        return np.exp(known.by_class.get("acct", known.time).quantile(levels))

    @cached_property
    def gaps_s(self) -> tuple[float, ...]:
        """Gaps between the start's answer and the interim message."""
        return tuple(sorted({*GAPS_S, float(np.median(self.values["gap_s"])), self.rtt_ms / 1e3}))

    @cached_property
    def rtt_ms(self) -> float:
        """Mean round trip between two data centres, the median over the draws."""
        ways = [way for row, ways in enumerate(self.cluster.wan_s) for dc, way in enumerate(ways) if dc != row]
        return float(rounded(2e3 * float(np.median(sum(ways) / len(ways)))))

    @cached_property
    def cluster(self) -> Cluster:
        """Where the replicas are."""
        return build_cluster(self.scenario, self.values)

    @cached_property
    def costs(self) -> Costs:
        """What operations cost."""
        return build_costs(self.scenario, self.values)

    def load(self, read: str) -> Load:
        """Return how busy Cassandra's cores are, by phase, if reads were at another level: they ask more replicas."""
        analysis, scenario = self.figures.analysis, self.scenario
        names = [name for name in analysis.demands if kind_of(name) == "cassandra"]
        own = np.mean([analysis.load(name) for name in names], axis=0)[self.chosen]
        more = self._asked(read) - self._asked(scenario.consistency_read)
        cores = scenario.dcs * scenario.cass_nodes * CASSANDRA_CORES
        each = own + more * _READS * self._read_s() / cores
        rate = np.broadcast_to(self.figures.point.rate_per_s, (analysis.draws,))[self.chosen]
        parts = [(time, ratio[self.chosen]) for time, ratio in phases(analysis)]
        return Load(np.array([t * r for t, r in parts]), np.array([rate * r * each for _, r in parts]))

    def _read_s(self) -> Number:
        """Work of one replica more that is asked by a read, with the messages at both ends where they are encrypted."""
        exchange = self.costs.links.get("read", Exchanges()).internode
        own = self.costs.read * (1 + self.costs.unseen)
        return own if exchange is None else own + 2 * exchange

    def _asked(self, read: str) -> float:
        """Mean number of replicas that a read asks, with the read-repair chance."""
        wanted = self.cluster.need(read, 0)
        count = wanted.total or wanted.by_dc[0]
        return count + LOCAL_READ_REPAIR_CHANCE * max(self.scenario.rf - count, 0)

    def rows(self, levels: Levels) -> list[SessionNotFound]:
        """Return the probabilities of a pair of levels, by gap."""
        plain, repeated = self._chances(levels, np.ones(1)), self._chances(levels, self.factor)
        bands = [without_the_least(probability_band(*parts)) for parts in zip(plain, repeated, strict=True)]
        return [
            SessionNotFound(*levels, rtt_ms=self.rtt_ms, gap_ms=1e3 * gap, probability=band)
            for gap, band in zip(self.gaps_s, bands, strict=True)
        ]

    def _chances(self, levels: Levels, factor: FloatArray) -> FloatArray:
        """Return probabilities (gaps, draws, samples) with the times of machines multiplied."""
        costs = replace(
            self.costs,
            coordinator=self.costs.coordinator * factor,
            mutation=self.costs.mutation * factor,
            links={operation: each.in_seconds(factor) for operation, each in self.costs.links.items()},
        )
        question = Question(read=levels[0], write=levels[1], client_s=self.values["front_s"] * factor)
        return chances_not_found(self.cluster, costs, self.load(levels[0]), question, self.gaps_s, self.sampling)


def probability_band(chances: FloatArray, repeated: FloatArray) -> Band:
    """Return the band of a probability.

    Parameters
    ----------
    chances : array (draws, samples)
        Probabilities given what was sampled; samples in no order.
    repeated : array (draws, samples)
        The same with a discrepancy at each draw.
    """
    by_draw, by_repeat = chances.mean(axis=1), repeated.mean(axis=1)
    value = float(np.median(by_draw))
    if not by_repeat.any():
        return Band.exactly(0.0)
    low, high = (float(each) for each in np.quantile(by_repeat, [LOW, HIGH]))
    batches = chances.reshape(len(chances), _BATCHES, -1).mean(axis=(0, 2))
    error = _T95 * float(batches.std(ddof=1)) / _BATCHES**0.5
    parameter = float(np.subtract(*np.quantile(by_draw, [HIGH, LOW]))) / 2
    discrepancy = max(((high - low) / 2) ** 2 - parameter**2, 0.0) ** 0.5
    return Band(
        value,
        max(value - float(np.hypot(max(value - low, 0.0), error)), 0.0),
        min(value + float(np.hypot(max(high - value, 0.0), error)), 1.0),
        Parts(parameter, discrepancy, error),
    )


def without_the_least(band: Band) -> Band:
    """Return the band of a probability with 0 for all that is below the least that is told; exactly 0 stays."""
    if not band.high:
        return band
    parts = Parts(*(None if each is None else _told(each) for each in astuple(band.parts)))
    return Band(_told(band.value), _told(band.low), max(band.high, LEAST_PROBABILITY), parts)


def _told(probability: float) -> float:
    return probability if probability >= LEAST_PROBABILITY else 0.0
