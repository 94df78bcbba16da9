"""Branches that end with a visit which keeps a unit: the compiled engine has no event for its end, SimPy has.

The networks are like writes of a cluster, with times that are few and round, so that much happens at the same tick.
"""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.simulator.same_path import assert_same
from tests.strategies import ROUND_S

from capplan.models.language.distribution import Deterministic, Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Pool, Station
from capplan.models.language.step import (
    Acquire,
    CountdownLatch,
    Delay,
    FanOut,
    ForkJoin,
    Group,
    Pick,
    ReplicaSet,
    Sequence,
    Signal,
    Step,
    Visit,
)
from capplan.models.language.traffic import Event, Open, RequestClass, Session, Timeline
from capplan.simulator.compiled import engine as compiled
from capplan.simulator.compiled.kernel import layout
from capplan.simulator.reference import engine as reference

NETWORKS = 150
NODES = 3
TICKS_S = st.sampled_from([0.001, 0.002, 0.003])
TIMES = st.builds(Deterministic, ROUND_S) | st.builds(Exponential, TICKS_S)


@st.composite
def answers(draw: st.DrawFn, groups: tuple[str, ...]) -> tuple[Step, ...]:
    """Signals at once, or detached and after some time; they may be dropped on their way."""
    signals = tuple(Signal(name) for name in groups)
    way: tuple[Step, ...] = (Delay(draw(TIMES), "back"),)
    if draw(st.booleans()):
        way = (*way, Visit("cpu", draw(TIMES), "receive", "replica"))
    detached = ForkJoin((Sequence((*way, *signals)),), 0)
    return draw(st.sampled_from([signals, (detached,), (detached,)]))


@st.composite
def branches(draw: st.DrawFn, groups: tuple[str, ...]) -> Step:
    """What happens at a replica: work, an answer, and a visit to the disk that keeps the replica's unit."""
    there = draw(st.sampled_from([(), (Delay(draw(TIMES), "there"),)]))
    work = draw(st.sampled_from([(), (Visit("cpu", draw(TIMES), "work", "replica"),)]))
    stored = Visit("disk", draw(st.builds(Deterministic, TICKS_S) | TIMES), "store", "replica")
    kept = Sequence((*work, *draw(answers(groups)), stored))
    return Sequence((*there, Acquire("buffer", kept, member="replica")))


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Networks with one or two latches around the branches, and others who take units of the pool."""
    groups = draw(st.sampled_from([("one",), ("one", "other")]))
    needed = tuple(Group(name, draw(st.integers(1, 2))) for name in groups)
    silent, heard = FanOut("replicas", "replica", draw(branches(())), 0), draw(branches(groups))
    written = FanOut("replicas", "replica", heard, draw(st.sampled_from([0, 0, 2])))
    steps = draw(st.sampled_from([(written,), (written, Delay(draw(TIMES))), (silent, written)]))
    latched: Step = CountdownLatch(needed, Sequence(steps), draw(st.integers(1, len(groups))))
    if draw(st.booleans()):
        latched = CountdownLatch((Group("outer", 1),), ForkJoin((Sequence((latched, Signal("outer"))),), 0))
    flow = Pick("coordinator", "cpu", "round_robin", ReplicaSet("replicas", "cpu", 3, latched))
    other = Pick("node", "cpu", "random", Acquire("buffer", Delay(draw(TIMES)), member="node"))
    away = draw(st.sampled_from([(), ("cpu",), ("cpu/1",), ("cpu/2",)]))
    changes = [(Event(0.2, "down", name), Event(0.5, "up", name)) for name in away]
    limit = draw(st.sampled_from([None, 0, 2]))
    return Network(
        "writes",
        (Station("cpu", 2, "ps", count=NODES), Station("disk", 1, count=NODES)),
        (RequestClass("write", flow), RequestClass("other", other)),
        Open(draw(st.sampled_from([100.0, 250.0, 500.0])), {"talk": 0.9, "other": 0.1}),
        pools=(Pool("buffer", draw(st.integers(1, 4)), limit, count=NODES),),
        sessions=(Session("talk", ("write", "write"), (Deterministic(0.001),)),),
        timeline=Timeline(tuple(event for pair in changes for event in pair), detection_s=draw(ROUND_S)),
    )


@pytest.mark.slow
def test_both_engines_walk_the_same_path_where_visits_keep_units() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=NETWORKS, suppress_health_check=list(HealthCheck))
    @given(networks(), st.integers(0, 2**32))
    def walk_both(network: Network, seed: int) -> None:
        plain = reference.simulate(network, 0.8, seed=seed, warmup_s=0.1)
        fast = compiled.simulate(network, 0.8, seed=seed, warmup_s=0.1, trace=True)
        assert_same(plain, fast)
        code = compiled.lowered(network).base.code["op_step"] >> 24
        buffers = [pool for name, pool in fast.pools.items() if name.startswith("buffer")]
        seen["kept"] += bool((code == layout.SEND_KEEPING).any())
        seen["full"] += any(pool.mean_wait_s > 0 for pool in buffers)
        seen["dropped"] += fast.drop_rate() > 0

    walk_both()
    assert min(seen[name] for name in ("kept", "full", "dropped")) > NETWORKS / 5, seen
