"""Random valid networks of the whole language, for tests of documents and for tests that compare engines.

Every network is valid and no pool can block itself: nested holds take pools in the order of their list. `without`
leaves out constructs (`Batch`), disciplines and policies (`"ps"`), for an engine that refuses them.
"""

from collections.abc import Callable
from typing import Literal

from hypothesis import strategies as st

from capplan.models.language.distribution import (
    Deterministic,
    Distribution,
    Empirical,
    Erlang,
    Exponential,
    Hyperexponential,
    Lognormal,
    Mixture,
    Pareto,
    Weibull,
)
from capplan.models.language.network import ALL_TRAFFIC, Network
from capplan.models.language.station import Background, Host, Pauses, Pool, RateTable, Station
from capplan.models.language.step import (
    Acquire,
    Batch,
    Choice,
    CountdownLatch,
    Delay,
    ForkJoin,
    Group,
    Hedge,
    Route,
    RoutePolicy,
    Sequence,
    Signal,
    Step,
    Visit,
    walk,
)
from capplan.models.language.traffic import (
    Arrivals,
    Bursty,
    Closed,
    Event,
    Open,
    Poisson,
    RequestClass,
    Retry,
    Session,
    Throttled,
    Timeline,
    Trace,
    Traffic,
)

Without = frozenset[object]
NOTHING: Without = frozenset()

DURATIONS_S = st.floats(min_value=1e-5, max_value=0.1)
# Few and round, so that things happen at the same instant: ties are where engines differ.
ROUND_S = st.sampled_from([0.0, 0.001, 0.002, 0.003])
SHAPES = st.sampled_from([0.3, 0.5, 1.0, 1.3, 2.0, 3.7, 6.0])  # few: engines make a table for each
SMALL = st.integers(min_value=1, max_value=3)
EVENLY = st.integers(0, 9_999)  # for picks modulo a few: less given to the first than `sampled_from`
NAMES = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=6)
STATION_NAMES = ("disk", "cpu", "wire")
POOL_NAMES = ("workers", "sockets")
CLASS_NAMES = ("read", "write")


@st.composite
def probabilities(draw: st.DrawFn, count: int) -> tuple[float, ...]:
    """Positive probabilities with sum 1."""
    weights = draw(st.lists(st.integers(1, 9), min_size=count, max_size=count))
    return tuple(weight / sum(weights) for weight in weights)


SIMPLE_LAWS: st.SearchStrategy[Distribution] = st.one_of(
    st.builds(Deterministic, ROUND_S),
    st.builds(Exponential, DURATIONS_S),
    st.builds(Erlang, DURATIONS_S, st.integers(1, 5)),
    st.builds(Lognormal, DURATIONS_S, SHAPES),
    st.builds(Weibull, DURATIONS_S, SHAPES),
    st.builds(Pareto, DURATIONS_S, st.sampled_from([1.1, 1.8, 2.5, 5.0])),
    st.builds(Empirical, st.lists(DURATIONS_S, min_size=2, max_size=5).map(lambda values: tuple(sorted(values)))),
)


@st.composite
def hyperexponentials(draw: st.DrawFn) -> Hyperexponential:
    """Hyperexponentials of one to three branches."""
    means = draw(st.lists(DURATIONS_S, min_size=1, max_size=3))
    return Hyperexponential(draw(probabilities(len(means))), tuple(means))


@st.composite
def mixtures(draw: st.DrawFn, parts: st.SearchStrategy[Distribution]) -> Mixture:
    """Mixtures of one to three laws."""
    laws = draw(st.lists(parts, min_size=1, max_size=3))
    return Mixture(draw(probabilities(len(laws))), tuple(laws))


LAWS = st.recursive(st.one_of(SIMPLE_LAWS, hyperexponentials()), mixtures, max_leaves=3)
# From more often than requests to hardly ever; never so often that a run does little else.
RECURRING = st.builds(Exponential, st.sampled_from([0.02, 0.1, 0.5, 3.0]))


DISCIPLINES: list[Literal["fcfs", "ps"]] = ["fcfs", "ps"]
POLICIES: list[RoutePolicy] = ["round_robin", "random", "least_loaded", "token_aware", "latency_ranked"]
ROUTES: list[Literal["independent", "sticky"]] = ["independent", "sticky"]


@st.composite
def stations(draw: st.DrawFn, name: str, host: str | None, without: Without) -> Station:
    """Stations with every option."""
    discipline = draw(st.sampled_from([each for each in DISCIPLINES if each not in without]))
    rates = st.none() | st.builds(RateTable, st.lists(SHAPES, min_size=1, max_size=3).map(tuple))
    pauses = st.just(()) | st.tuples(st.builds(Pauses, RECURRING, LAWS))
    background = st.just(()) | st.tuples(st.builds(Background, RECURRING, LAWS, st.floats(0.1, 1.0)))
    return Station(
        name,
        draw(SMALL),
        discipline,
        None if RateTable in without else draw(rates),
        draw(st.none() | DURATIONS_S) if discipline == "fcfs" else None,
        () if Pauses in without else draw(pauses),
        () if Background in without else draw(background),
        host,
    )


@st.composite
def steps(
    draw: st.DrawFn, without: Without, pools: tuple[str, ...], groups: tuple[str, ...] = (), depth: int = 3
) -> Step:
    """Steps of every kind; `groups` are those that a signal may count for, `pools` those that may still be taken."""
    name = draw(st.sampled_from(["", "here", "there"]))
    inner = steps(without, pools, groups, depth - 1)
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    options: dict[type, Callable[[], Step]] = {
        Visit: lambda: Visit(draw(st.sampled_from(STATION_NAMES)), draw(LAWS), name),
        Delay: lambda: Delay(draw(LAWS), name),
    }
    if groups:
        options[Signal] = lambda: Signal(draw(st.sampled_from(groups)), name)
    if depth:
        policies = [each for each in POLICIES if each not in without]
        nested: dict[type, Callable[[], Step]] = {
            Sequence: lambda: Sequence(draw(several), name),
            ForkJoin: lambda: draw(fork_joins(several, name)),
            CountdownLatch: lambda: draw(latches(without, pools, depth, name)),
            Hedge: lambda: Hedge(draw(inner), draw(ROUND_S), draw(inner), name),
            Choice: lambda: draw(choices(several, name)),
            Route: lambda: Route(draw(st.sampled_from(policies)), draw(several), name),
            Batch: lambda: Batch(draw(SMALL), draw(ROUND_S), draw(steps(without, pools, (), depth - 1)), name),
        }
        options |= nested
    if depth and pools:
        place = draw(st.integers(0, len(pools) - 1))
        options[Acquire] = lambda: Acquire(
            pools[place], draw(steps(without, pools[place + 1 :], groups, depth - 1)), name
        )
    kinds = [kind for kind in (*options, *(2 * [Route] if depth else [])) if kind not in without]
    return options[draw(st.sampled_from(kinds))]()


@st.composite
def fork_joins(draw: st.DrawFn, several: st.SearchStrategy[tuple[Step, ...]], name: str) -> ForkJoin:
    """Fork-joins that need none to all of their branches."""
    branches = draw(several)
    return ForkJoin(branches, draw(st.integers(0, len(branches))), name)


@st.composite
def choices(draw: st.DrawFn, several: st.SearchStrategy[tuple[Step, ...]], name: str) -> Choice:
    """Choices with random probabilities."""
    options = draw(several)
    return Choice(draw(probabilities(len(options))), options, name)


@st.composite
def latches(draw: st.DrawFn, without: Without, pools: tuple[str, ...], depth: int, name: str) -> CountdownLatch:
    """Latches that always open: detached branches bring as many signals as each group needs, others may bring more."""
    names = draw(st.lists(st.sampled_from(["dc 1", "dc 2", "dc 3"]), min_size=1, max_size=2, unique=True))
    groups = tuple(Group(each, draw(st.integers(1, 2))) for each in names)
    before = steps(without, pools, tuple(names), depth - 1)
    branches = [
        Sequence((draw(before), Signal(group.name))) if draw(st.booleans()) else Signal(group.name)
        for group in groups
        for _ in range(group.needed)
    ]
    fork = ForkJoin(tuple(draw(st.permutations(branches))), draw(st.integers(0, len(branches))))
    return CountdownLatch(groups, fork, draw(st.none() | st.integers(1, len(groups))), name)


@st.composite
def arrivals(draw: st.DrawFn, without: Without) -> Arrivals:
    """Poisson, bursty and given arrivals."""
    fraction = draw(st.floats(0.01, 0.9))
    times = st.lists(ROUND_S | st.floats(0.001, 1.0), min_size=1, max_size=6)  # of each second: a pattern
    options: dict[type, st.SearchStrategy[Arrivals]] = {
        Poisson: st.just(Poisson()),
        Bursty: st.builds(Bursty, st.floats(1.0, 1 / fraction), st.just(fraction), DURATIONS_S),
        Trace: times.map(lambda values: Trace(tuple(sorted(turn + value for turn in range(180) for value in values)))),
    }
    kinds = [kind for kind in (*options, Trace) if kind not in without]  # hypothesis gives up more often on traces
    return draw(options[kinds[draw(EVENLY) % len(kinds)]])


@st.composite
def traffics(draw: st.DrawFn, sources: tuple[str, ...], without: Without) -> Traffic:
    """Open, closed and throttled traffic over one or more of `sources`."""
    asked = draw(st.lists(st.sampled_from(sources), min_size=1, unique=True))
    mix = dict(zip(asked, draw(probabilities(len(asked))), strict=True))
    rate = st.floats(50.0, 2000.0)
    options: dict[type, Callable[[], Traffic]] = {
        Open: lambda: Open(draw(rate), mix, draw(arrivals(without))),
        Closed: lambda: Closed(draw(st.integers(1, 20)), draw(LAWS), mix),
        Throttled: lambda: Throttled(draw(st.integers(1, 20)), draw(rate), mix),
    }
    kinds = [kind for kind in options if kind not in without]
    return options[kinds[draw(EVENLY) % len(kinds)]]()


@st.composite
def timelines(draw: st.DrawFn, places: tuple[str, ...], delays: tuple[str, ...], sources: tuple[str, ...]) -> Timeline:
    """Timelines with events of every kind."""
    at, factor = st.sampled_from([0.0, 0.001, 0.002, 0.01, 0.05, 0.2, 1.0]) | st.floats(0.0, 5.0), SHAPES
    place = st.sampled_from(places)
    kinds = {
        "outage": st.tuples(st.builds(Event, at, st.just("down"), place), st.builds(Event, at, st.just("up"), place)),
        "down": st.tuples(st.builds(Event, at, st.just("down"), place)),
        "speed": st.tuples(st.builds(Event, at, st.just("speed"), place, factor)),
        "traffic": st.tuples(
            st.builds(Event, at, st.just("scale_traffic"), st.sampled_from([ALL_TRAFFIC, *sources]), factor)
        ),
    }
    if delays:
        kinds["delay"] = st.tuples(st.builds(Event, at, st.just("scale_delay"), st.sampled_from(delays), factor))
    weighted = ["outage", "outage", "down", *2 * ["speed"], *2 * ["traffic"], *(4 * ["delay"] if delays else [])]
    happening = [weighted[pick % len(weighted)] for pick in draw(st.lists(EVENLY, max_size=6))]
    events = tuple(event for name in happening for event in draw(kinds[name]))
    cold = st.just((0.0, 1.0)) | st.tuples(st.sampled_from([0.25, 1.0]), st.sampled_from([0.25, 0.7]))
    return Timeline(events, draw(ROUND_S), *draw(cold))


@st.composite
def session(draw: st.DrawFn, without: Without) -> Session:
    """Sessions of one to three requests."""
    members = draw(st.lists(st.sampled_from(CLASS_NAMES), min_size=1, max_size=3).map(tuple))
    route = draw(st.sampled_from([each for each in ROUTES if each not in without] * 2))
    return Session("session", members, tuple(draw(LAWS) for _ in members[1:]), route)


@st.composite
def networks(draw: st.DrawFn, without: Without = NOTHING) -> Network:
    """Whole networks, with every construct that `without` does not name."""
    retry = st.none() | st.builds(Retry, st.integers(2, 3), ROUND_S, SHAPES)
    flows = steps(without, () if Acquire in without else POOL_NAMES)
    classes = tuple(
        RequestClass(name, draw(flows), draw(st.none() | DURATIONS_S), None if Retry in without else draw(retry))
        for name in CLASS_NAMES
    )
    sessions = () if Session in without else (draw(session(without)),)
    hosts = () if Host in without else (Host("machine", draw(SMALL)),)
    traffic = draw(traffics((*CLASS_NAMES, *(each.name for each in sessions)), without))
    on = st.sampled_from([None, *(host.name for host in hosts)])
    places = (*STATION_NAMES, *(host.name for host in hosts))
    delays = {step.name for each in classes for step in walk(each.flow) if isinstance(step, Delay) and step.name}
    return Network(
        draw(NAMES),
        tuple(draw(stations(name, draw(on), without)) for name in STATION_NAMES),
        classes,
        traffic,
        tuple(Pool(name, draw(SMALL), draw(st.none() | st.integers(0, 3))) for name in POOL_NAMES),
        hosts,
        sessions,
        Timeline() if Timeline in without else draw(timelines(places, tuple(sorted(delays)), tuple(traffic.mix))),
    )
