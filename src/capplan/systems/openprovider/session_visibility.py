"""Probability that an interim message finds no session because it overtakes the row written by the start.

The scenario's consistency levels come first, then others for comparison. A figure is the median over parameter draws of
a sampled probability. Its band combines the spread of the parameters, the model error of times and the sampling error.
The model error multiplies all times of machines by one factor, but not the delays between data centres.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from functools import cached_property

import numpy as np

from capplan.answers.results import LEAST_PROBABILITY, Band, Parts, SessionNotFound, rounded
from capplan.layout.case import Case
from capplan.layout.ensemble import Places, at_draws, spaced
from capplan.layout.solution import Figures
from capplan.layout.uncertainty import HIGH, LOW
from capplan.models.cassandra.cluster import LOCAL_READ_REPAIR_CHANCE, Cluster, Costs
from capplan.models.cassandra.visibility import Load, Question, RandomNumbers, Sampling, chances_not_found
from capplan.models.language.parameter import Values
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.operating_point import MAX_DROP_RATE
from capplan.systems.openprovider.network import build_cluster, build_costs
from capplan.systems.openprovider.scenario import OpenproviderScenario

OTHERS = (  # levels of reads and writes to compare with: weaker ones, equally weak ones, and two that find every row
    ("LOCAL_ONE", "QUORUM"),
    ("LOCAL_QUORUM", "LOCAL_QUORUM"),
    ("LOCAL_QUORUM", "QUORUM"),
    ("LOCAL_QUORUM", "EACH_QUORUM"),
    ("QUORUM", "QUORUM"),
)
GAPS_S = (0.0, 5e-3, 50e-3)  # added to the documented gap and the round trip; the document mentions a few milliseconds
_DRAWS = 64  # of the ensemble: enough for the ends of a band
_MUTATIONS = 250_000  # sampled for each pair of levels, for any size of the cluster
_BATCHES = 10
_T95 = 1.8331129326562368  # 95th percentile of Student's t distribution with 9 degrees of freedom

Levels = tuple[str, str]
"""Consistency levels of reads and of writes."""


def sessions_not_found(case: Case[OpenproviderScenario], figures: Figures) -> tuple[SessionNotFound, ...]:
    """Return the probability by consistency levels and gap.

    Levels whose reads would overload Cassandra at the offered rate are left out, except those of the scenario.

    Parameters
    ----------
    case : Case
        The layout with its calibration.
    figures : Figures
        Its figures at the offered rate.

    Returns
    -------
    tuple of SessionNotFound
        Empty if one data centre has all clients, or beyond capacity.
    """
    sampled = _Sampled(case, figures)
    return tuple(row for levels in compared(case, figures)[0] for row in sampled.rows(levels))


def compared(case: Case[OpenproviderScenario], figures: Figures) -> tuple[tuple[Levels, ...], tuple[Levels, ...]]:
    """Return the levels to compare, the scenario's first, and the levels that would overload Cassandra."""
    alone = sum(share > 0 for share in case.scenario.shares_by_dc()) == 1
    if alone or float(np.median(figures.point.drop_rate)) > MAX_DROP_RATE:
        return (), ()
    own, sampled = (case.scenario.consistency_read, case.scenario.consistency_write), _Sampled(case, figures)
    others = tuple(levels for levels in OTHERS if levels != own)
    overloaded = tuple(levels for levels in others if sampled.overloads(levels[0]))
    return (own, *(levels for levels in others if levels not in overloaded)), overloaded


@dataclass(frozen=True)
class _Sampled:
    """A layout at its offered rate, at a few parameter draws."""

    case: Case[OpenproviderScenario]
    figures: Figures

    @property
    def scenario(self) -> OpenproviderScenario:
        """The layout."""
        return self.case.scenario

    @property
    def reads(self) -> float:
        """Reads per request."""
        return self.scenario.session_mix.reads / self.scenario.session_mix.total

    @cached_property
    def chosen(self) -> Places:
        """Indices of the draws, evenly spaced over the ensemble."""
        return spaced(self.figures.analysis.draws, _DRAWS)

    @cached_property
    def values(self) -> Values:
        """Parameter values at these draws."""
        return at_draws(self.case.values, self.chosen)

    @cached_property
    def sampling(self) -> Sampling:
        """Size of the sample, and its seed."""
        draws, replicas = len(self.chosen), sum(self.scenario.rf_by_dc())
        each = max(_MUTATIONS // (draws * replicas * _BATCHES), 4)
        return Sampling(draws, each * _BATCHES, self.case.uncertainty.seed)

    @cached_property
    def factor(self) -> FloatArray:
        """Model error of all times of machines, one factor per draw."""
        draws, uncertainty = len(self.chosen), self.case.uncertainty
        levels = (np.random.default_rng([uncertainty.seed, 3]).permutation(draws) + 0.5) / draws
        return np.exp(uncertainty.by_class.get("acct", uncertainty.time).quantile(levels))

    @cached_property
    def gaps_s(self) -> tuple[float, ...]:
        """Gaps between the answer to the start and the interim message, seconds."""
        return tuple(sorted({*GAPS_S, float(np.median(self.values["gap_s"])), self.rtt_ms / 1e3}))

    @cached_property
    def rtt_ms(self) -> float:
        """Mean round trip between the data centres of two messages, the median over draws, ms."""
        dcs, shares, wan_s = range(self.scenario.dcs), self.scenario.client_share, self.cluster.wan_s
        delays = [(a, b, wan_s[a][b]) for a in dcs for b in dcs if a != b]
        if shares is None:
            mean = sum(delay for _, _, delay in delays) / len(delays)
        else:
            mean = sum(shares[a] * shares[b] * delay for a, b, delay in delays) / sum(
                shares[a] * shares[b] for a, b, _ in delays
            )
        return float(rounded(2e3 * float(np.median(mean))))

    @cached_property
    def cluster(self) -> Cluster:
        """The Cassandra cluster."""
        return build_cluster(self.scenario, self.values)

    @cached_property
    def costs(self) -> Costs:
        """Costs of operations."""
        return build_costs(self.scenario, self.values)

    def overloads(self, read: str) -> bool:
        """Whether reads at another level overload Cassandra's cores in some data centre."""
        return bool(np.max(np.median(self.load(read).utilisation[-1], axis=0)) >= 1)

    def load(self, read: str) -> Load:
        """Return the utilisation of Cassandra's cores by phase, and by unequal DC, if reads use another level."""
        analysis, scenario = self.figures.analysis, self.scenario
        more = [
            self._replicas_read(read, dc) - self._replicas_read(scenario.consistency_read, dc)
            for dc in range(scenario.dcs)
        ]
        if scenario.unequal:
            reads = np.average(more, axis=0, weights=scenario.shares_by_dc())
            own = np.stack([self._mean_load(f"cassandra/dc{dc + 1}") for dc in range(scenario.dcs)], axis=-1)
            cores = np.array(scenario.nodes_by_dc()) * scenario.node_cores
            each = own + reads * (self.reads * np.asarray(self._read_s())[..., None] / cores)
        else:
            own = self._mean_load("cassandra/")
            total = sum(scenario.nodes_by_dc()) * scenario.node_cores
            each = own + float(more[0].sum()) * self.reads * self._read_s() / total
        point, utilisation, parts = self.figures.point, [], []
        for time, share, state in zip(point.durations, point.shares, point.states, strict=True):
            arrived = point.rate_per_s * share * (1 - state.drop_rate)  # what is dropped reaches no core
            rate = np.broadcast_to(arrived / time, (analysis.draws,))[self.chosen]
            utilisation.append(rate.reshape(-1, *(1,) * (each.ndim - 1)) * each)
            parts.append(np.broadcast_to(share, (analysis.draws,))[self.chosen])
        return Load(np.array(parts), np.array(utilisation))

    def _mean_load(self, prefix: str) -> FloatArray:
        """Return the mean utilisation of some nodes per unit of request rate (draws,)."""
        analysis = self.figures.analysis
        counts = {name: analysis.members[name] for name in analysis.demands if name.startswith(prefix)}
        loads = [analysis.load(name) for name in counts]
        return np.asarray(np.average(loads, axis=0, weights=list(counts.values()))[self.chosen])

    def _read_s(self) -> Number:
        """Return the service demand of one additional replica per read, including the messages at both ends."""
        return self.costs.read * (1 + self.costs.unseen) + 2 * self.costs.exchange_s("read")

    def _replicas_read(self, read: str, dc: int) -> FloatArray:
        """Return the mean number of replicas in each data centre that a read in `dc` contacts, with read repair."""
        need, rf = self.cluster.need(read, dc), self.cluster.rf
        if len(need.by_dc) > 1:
            return np.array([float(need.by_dc[each]) for each in range(len(rf))])
        left = need.total or need.by_dc[dc]
        found = np.zeros(len(rf))
        found[dc] = LOCAL_READ_REPAIR_CHANCE * max(rf[dc] - left, 0)
        for other in (dc, *self.cluster.nearest_first(dc)):
            found[other] += min(left, rf[other])
            left -= min(left, rf[other])
        return found

    def rows(self, levels: Levels) -> list[SessionNotFound]:
        """Return the probabilities at a pair of levels, by gap."""
        plain, repeated = self._chances(levels, np.ones(1)), self._chances(levels, self.factor)
        bands = [without_smallest(probability_band(*parts)) for parts in zip(plain, repeated, strict=True)]
        return [
            SessionNotFound(*levels, rtt_ms=self.rtt_ms, gap_ms=1e3 * gap, probability=band)
            for gap, band in zip(self.gaps_s, bands, strict=True)
        ]

    def _chances(self, levels: Levels, factor: FloatArray) -> FloatArray:
        """Return the probabilities (gaps, draws, samples), with machine times multiplied by `factor`."""
        costs = replace(
            self.costs,
            coordinator=self.costs.coordinator * factor,
            mutation=self.costs.mutation * factor,
            message=self.costs.message * factor,
            links={operation: each.times(factor) for operation, each in self.costs.links.items()},
        )
        load, numbers = self._drawn(levels[0])
        question = Question(
            read=levels[0],
            write=levels[1],
            client_s=self.values["front_s"] / self.scenario.front_speed * factor,
            client_share=self.scenario.client_share,
        )
        return chances_not_found(self.cluster, costs, load, question, self.gaps_s, self.sampling, numbers)

    def _drawn(self, read: str) -> tuple[Load, RandomNumbers]:
        """Return the load if reads use a level, and its random numbers."""
        if read not in self._known:
            load = self.load(read)
            self._known[read] = load, RandomNumbers(load, self.sampling, self.cluster.cores)
        return self._known[read]

    @cached_property
    def _known(self) -> dict[str, tuple[Load, RandomNumbers]]:
        return {}


def probability_band(chances: FloatArray, repeated: FloatArray) -> Band:
    """Return the band of a probability.

    Parameters
    ----------
    chances : array (draws, samples)
        Probabilities given each sample; the order of samples is arbitrary.
    repeated : array (draws, samples)
        The same with a model error at each draw.

    Returns
    -------
    Band
        Median and 90 % band, with its parts.
    """
    by_draw, by_repeat = chances.mean(axis=1), repeated.mean(axis=1)
    value = float(np.median(by_draw))
    if not by_repeat.any():
        return Band.exactly(0.0)
    low, high = (float(each) for each in np.quantile(by_repeat, [LOW, HIGH]))
    batches = chances.reshape(len(chances), _BATCHES, -1).mean(axis=(0, 2))
    error = _T95 * float(batches.std(ddof=1)) / _BATCHES**0.5
    parameter = float(np.subtract(*np.quantile(by_draw, [HIGH, LOW]))) / 2
    model_error = max(((high - low) / 2) ** 2 - parameter**2, 0.0) ** 0.5
    return Band(
        value,
        max(value - float(np.hypot(max(value - low, 0.0), error)), 0.0),
        min(value + float(np.hypot(max(high - value, 0.0), error)), 1.0),
        Parts(parameter, model_error, error),
    )


def without_smallest(band: Band) -> Band:
    """Return the band of a probability with values below `LEAST_PROBABILITY` set to 0, except its high end.

    The high end is at least `LEAST_PROBABILITY`, unless it is exactly 0.
    """
    if not band.high:
        return band
    parts = Parts(*(None if each is None else _or_zero(each) for each in astuple(band.parts)))
    return Band(_or_zero(band.value), _or_zero(band.low), max(band.high, LEAST_PROBABILITY), parts)


def _or_zero(probability: float) -> float:
    return probability if probability >= LEAST_PROBABILITY else 0.0
