"""Random valid networks of the whole language, for tests of documents and for tests that compare engines.

Every network is valid and no pool can block itself: nested holds take pools in the order of their list. `without`
leaves out constructs (`Batch`), disciplines and policies (`"ps"`), for an engine that refuses them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
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
from capplan.models.language.station import (
    Assignment,
    Background,
    Differs,
    Host,
    Pauses,
    Pool,
    RateTable,
    Station,
    member_name,
)
from capplan.models.language.step import (
    Acquire,
    Batch,
    Choice,
    CountdownLatch,
    Delay,
    FanOut,
    ForkJoin,
    Group,
    Hedge,
    If,
    Pick,
    ReplicaSet,
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
from capplan.visible_text import broken_name_rule

Without = frozenset[object]
NOTHING: Without = frozenset()

DURATIONS_S = st.floats(min_value=1e-5, max_value=0.1)
# Few and round, so that things happen at the same instant: ties are where engines differ.
ROUND_S = st.sampled_from([0.0, 0.001, 0.002, 0.003])
SHAPES = st.sampled_from([0.3, 0.5, 1.0, 1.3, 2.0, 3.7, 6.0])  # few: engines make a table for each
SMALL = st.integers(min_value=1, max_value=3)
EVENLY = st.integers(0, 9_999)  # for picks modulo a few: less given to the first than `sampled_from`
_SHOWN = st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs"))
NAMES = st.text(_SHOWN, min_size=1, max_size=6).filter(lambda text: broken_name_rule(text) is None)
STATION_NAMES = ("disk", "cpu", "wire")
NODES = ("nodes", "stores")  # stations with a count, as many as the pool of threads has
EDGES = "edges"  # a station with a count of its own
MACHINES = "machines"  # a host with the count of the nodes
THREADS = "threads"
POOL_NAMES = ("workers", THREADS, "sockets")
# Of members and sets: an inner one hides an outer one, and a set hides a station.
BOUND_NAMES = ("one", "other", NODES[0])
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
ASSIGNMENTS: list[Assignment] = ["pooled", "random", "round_robin", "least_loaded"]
POLICIES: list[RoutePolicy] = ["round_robin", "random", "least_loaded", "token_aware", "latency_ranked", "first"]
PLACEMENTS: list[Literal["ring", "random"]] = ["ring", "random"]
ROUTES: list[Literal["independent", "sticky"]] = ["independent", "sticky"]


@st.composite
def stations(draw: st.DrawFn, name: str, host: str | None, without: Without, count: int | None = None) -> Station:
    """Stations with every option."""
    discipline = draw(st.sampled_from([each for each in DISCIPLINES if each not in without]))
    assignment = draw(st.sampled_from([each for each in ASSIGNMENTS if each not in without]))
    most = 3 if assignment == "pooled" else 1  # a table for all servers together makes no sense for lanes
    rates = st.none() | st.builds(RateTable, st.lists(SHAPES, min_size=1, max_size=most).map(tuple))
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
        count,
        () if count is None or Differs in without else draw(exceptions(count)),
        assignment,
    )


@st.composite
def exceptions(draw: st.DrawFn, count: int) -> tuple[Differs, ...]:
    """Members that differ from the others in one way or several; at least one is up."""
    numbers = draw(st.lists(st.integers(1, count), max_size=2, unique=True))
    differing = [Differs(number, draw(st.none() | SMALL), draw(st.just(1.0) | SHAPES)) for number in numbers]
    if differing and count > 1 and draw(st.booleans()):
        differing[0] = replace(differing[0], down=True)
    return tuple(differing)


@dataclass(frozen=True)
class Around:
    """What surrounds a step, which it may refer to.

    `pools` are those that may still be taken, `groups` those that a signal may count for. `members` are the bound names
    with the count of their station, `sets` those of sets with their size too.
    """

    without: Without
    counts: Mapping[str, int]
    pools: tuple[str, ...]
    groups: tuple[str, ...] = ()
    members: Mapping[str, int] = field(default_factory=dict)
    sets: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def with_member(self, name: str, count: int) -> "Around":
        """Bind a name to a member."""
        sets = {known: of for known, of in self.sets.items() if known != name}
        return replace(self, members={**self.members, name: count}, sets=sets)

    def with_set(self, name: str, count: int, size: int) -> "Around":
        """Bind a name to a set."""
        members = {known: of for known, of in self.members.items() if known != name}
        return replace(self, members=members, sets={**self.sets, name: (count, size)})

    def members_of(self, place: str) -> list[str | None]:
        """Return the bound names that may be the member of a station or pool; one None if it has no count."""
        if place not in self.counts:
            return [None]
        return [name for name, count in self.members.items() if count == self.counts[place]]

    def references(self, places: tuple[str, ...]) -> list[tuple[str, str | None]]:
        """Return all that a visit or acquisition may refer to among these stations or pools."""
        return [(place, member) for place in places for member in self.members_of(place)]


@st.composite
def steps(draw: st.DrawFn, around: Around, depth: int = 3) -> Step:
    """Steps of every kind."""
    name = draw(st.sampled_from(["", "here", "there"]))
    options: dict[type, Callable[[], Step]] = {
        Visit: lambda: draw(visits(around, name)),
        Delay: lambda: Delay(draw(LAWS), name),
    }
    if around.groups:
        options[Signal] = lambda: Signal(draw(st.sampled_from(around.groups)), name)
    if depth:
        options |= _nested(draw, around, depth, name) | _of_members(draw, around, depth, name)
    often = (Route, *2 * (Hedge, Batch, If, FanOut), Choice, CountdownLatch, Acquire)
    kinds = [kind for kind in (*options, *often) if kind in options and kind not in around.without]
    return options[draw(st.sampled_from(kinds))]()


def _nested(draw: st.DrawFn, around: Around, depth: int, name: str) -> dict[type, Callable[[], Step]]:
    inner = steps(around, depth - 1)
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    policies = [each for each in POLICIES if each not in around.without]
    alone = replace(around, groups=(), members={}, sets={})
    options: dict[type, Callable[[], Step]] = {
        Sequence: lambda: Sequence(draw(several), name),
        ForkJoin: lambda: draw(fork_joins(several, name)),
        CountdownLatch: lambda: draw(latches(around, depth, name)),
        Hedge: lambda: Hedge(draw(inner), draw(ROUND_S), draw(inner), name),
        Choice: lambda: draw(choices(several, name)),
        Route: lambda: draw(routes(st.sampled_from(policies), several, name)),
        Batch: lambda: Batch(draw(SMALL), draw(ROUND_S), draw(steps(alone, depth - 1)), name),
    }
    if around.references(around.pools):
        options[Acquire] = lambda: draw(acquisitions(around, depth, name))
    return options


def _of_members(draw: st.DrawFn, around: Around, depth: int, name: str) -> dict[type, Callable[[], Step]]:
    options: dict[type, Callable[[], Step]] = {
        Pick: lambda: draw(picks(around, depth, name)),
        ReplicaSet: lambda: draw(replica_sets(around, depth, name)),
    }
    if around.members:
        options[If] = lambda: draw(comparisons(around, depth, name))
    if around.sets:
        options[FanOut] = lambda: draw(fan_outs(around, depth, name))
    return options


@st.composite
def visits(draw: st.DrawFn, around: Around, name: str) -> Visit:
    """Visits to stations without a count, and more often to bound members."""
    known = around.references((*STATION_NAMES, *2 * (*NODES, EDGES)))
    station, member = draw(st.sampled_from(known))
    return Visit(station, draw(LAWS), name, member)


@st.composite
def acquisitions(draw: st.DrawFn, around: Around, depth: int, name: str) -> Acquire:
    """Acquisitions; inside, only the pools that follow in the list may be taken."""
    known = around.references(around.pools)
    pool, member = draw(st.sampled_from([*known, *(2 * [each for each in known if each[1] is not None])]))
    later = around.pools[around.pools.index(pool) + 1 :]
    return Acquire(pool, draw(steps(replace(around, pools=later), depth - 1)), name, member)


@st.composite
def picks(draw: st.DrawFn, around: Around, depth: int, name: str, of: str | None = None) -> Pick:
    """Picks from stations, pools and sets; from `of` if that is given."""
    counts = {**around.counts, **{known: count for known, (count, _) in around.sets.items()}}
    of_set = bool(around.sets) and draw(st.booleans())
    among = of or draw(st.sampled_from(tuple(around.sets) if of_set else tuple(around.counts)))
    member = draw(st.sampled_from(BOUND_NAMES))
    policy = draw(st.sampled_from([each for each in POLICIES if each not in around.without]))
    inner = around.with_member(member, counts[among])
    return Pick(member, among, policy, draw(steps(inner, depth - 1)), name)


@st.composite
def replica_sets(draw: st.DrawFn, around: Around, depth: int, name: str) -> ReplicaSet:
    """Replica sets; mostly, a step over the set follows."""
    among = draw(st.sampled_from(tuple(around.counts)))
    count, members = around.counts[among], draw(st.sampled_from(BOUND_NAMES))
    size = draw(st.integers(1, count))
    first = draw(st.sampled_from([None, *2 * around.members_of(among)]))
    inner = around.with_set(members, count, size)
    over: list[st.SearchStrategy[Step]] = [steps(inner, depth - 1)]
    over += [] if Pick in around.without else 5 * [picks(inner, depth, "", members)]
    over += [] if FanOut in around.without else 7 * [fan_outs(inner, depth, "")]
    step = draw(over[draw(EVENLY) % len(over)])
    return ReplicaSet(members, among, size, step, draw(st.sampled_from(PLACEMENTS)), first, name)


@st.composite
def coordinated(draw: st.DrawFn, around: Around) -> Step:
    """Requests as in a cluster: a pick, perhaps a unit of the member's pool, and a replica set."""
    coordinator, policy = draw(st.sampled_from(BOUND_NAMES)), draw(st.sampled_from(POLICIES))
    later = around.pools[around.pools.index(THREADS) + 1 :] if THREADS in around.pools else ()
    inner = replace(around.with_member(coordinator, around.counts[THREADS]), pools=later)
    step: Step = draw(replica_sets(inner, 2, "replicas"))
    if THREADS in around.pools and draw(EVENLY) % 3:
        step = Acquire(THREADS, step, "threads", coordinator)
    return Pick(coordinator, draw(st.sampled_from([*NODES, THREADS])), policy, step, "coordinator")


@st.composite
def fan_outs(draw: st.DrawFn, around: Around, depth: int, name: str) -> FanOut:
    """Fan-outs over all or some members of a set, which need none to all of their branches."""
    over = draw(st.sampled_from(tuple(around.sets)))
    count, size = around.sets[over]
    contacted = draw(st.integers(1, size)) if draw(EVENLY) % 3 else None
    member = draw(st.sampled_from(BOUND_NAMES))
    inner = around.with_member(member, count)
    alike = If in around.without or draw(EVENLY) % 3
    step = draw(steps(inner, depth - 1) if alike else comparisons(inner, depth, ""))
    return FanOut(over, member, step, draw(st.integers(0, contacted or size)), contacted, name)


@st.composite
def comparisons(draw: st.DrawFn, around: Around, depth: int, name: str) -> If:
    """Comparisons of a member with another member or a set."""
    member = draw(st.sampled_from(tuple(around.members)))
    counts = {**around.members, **{known: count for known, (count, _) in around.sets.items()}}
    comparable = [known for known, count in counts.items() if count == counts[member]]
    inner = steps(around, depth - 1)
    return If(member, draw(st.sampled_from(comparable)), draw(inner), draw(inner), name)


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
def routes(
    draw: st.DrawFn, policies: st.SearchStrategy[RoutePolicy], several: st.SearchStrategy[tuple[Step, ...]], name: str
) -> Route:
    """Routes by any policy; random ones with and without weights."""
    policy, targets = draw(policies), draw(several)
    weights = st.lists(st.sampled_from([0.0, 0.3, 1.0]), min_size=len(targets), max_size=len(targets))
    given = draw(weights) if policy == "random" and draw(st.booleans()) else []
    return Route(policy, targets, name, tuple(given) if any(given) else ())


@st.composite
def latches(draw: st.DrawFn, around: Around, depth: int, name: str) -> CountdownLatch:
    """Latches that always open when no member is down.

    Detached branches, or those of a fan-out, bring as many signals as each group needs; others may bring more.
    """
    names = draw(st.lists(st.sampled_from(["dc 1", "dc 2", "dc 3"]), min_size=1, max_size=2, unique=True))
    groups = tuple(Group(each, draw(st.integers(1, 2))) for each in names)
    inner = replace(around, groups=tuple(names))
    wide = [over for over, (_, size) in around.sets.items() if size >= max(group.needed for group in groups)]
    if wide and FanOut not in around.without:
        step = draw(signalling_fan_outs(inner, draw(st.sampled_from(wide)), depth))
    else:
        before = steps(inner, depth - 1)
        branches = [
            Sequence((draw(before), Signal(group.name))) if draw(st.booleans()) else Signal(group.name)
            for group in groups
            for _ in range(group.needed)
        ]
        step = ForkJoin(tuple(draw(st.permutations(branches))), draw(st.integers(0, len(branches))))
    return CountdownLatch(groups, step, draw(st.none() | st.integers(1, len(groups))), name)


@st.composite
def signalling_fan_outs(draw: st.DrawFn, around: Around, over: str, depth: int) -> Step:
    """Fan-outs over all members of a set, each of which sends a signal to every group at its end."""
    count, size = around.sets[over]
    member = draw(st.sampled_from(BOUND_NAMES))
    before = draw(steps(around.with_member(member, count), depth - 1))
    branch = Sequence((before, *(Signal(group) for group in around.groups)))
    return FanOut(over, member, branch, draw(st.integers(0, size)))


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
    nodes, edges = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    counts = {**dict.fromkeys(NODES, nodes), EDGES: edges, THREADS: nodes}
    around = Around(without, counts, () if Acquire in without else POOL_NAMES)
    of_members = (picks(around, 4, "coordinator"), *2 * [coordinated(around)])
    flows = (steps(around), steps(around) if Pick in without else of_members[draw(EVENLY) % 3])
    classes = tuple(
        RequestClass(name, draw(flow), draw(st.none() | DURATIONS_S), None if Retry in without else draw(retry))
        for name, flow in zip(CLASS_NAMES, flows, strict=True)
    )
    sessions = () if Session in without else (draw(session(without)),)
    hosts = () if Host in without else (Host("machine", draw(SMALL)), Host(MACHINES, draw(SMALL), nodes))
    traffic = draw(traffics((*CLASS_NAMES, *(each.name for each in sessions)), without))
    on, on_machines = (st.sampled_from([None, *hosts_of]) for hosts_of in _hosts_of(hosts))
    counted = tuple(draw(stations(name, draw(on_machines), without, nodes)) for name in NODES)
    some_members = tuple(member_name(name, draw(st.integers(0, counts[name] - 1))) for name in (*NODES, EDGES))
    on_hosts = (MACHINES, member_name(MACHINES, draw(st.integers(0, nodes - 1)))) if hosts else ()
    places = (*STATION_NAMES, *(host.name for host in hosts), *NODES, EDGES, *some_members, *on_hosts)
    delays = {step.name for each in classes for step in walk(each.flow) if isinstance(step, Delay) and step.name}
    return Network(
        draw(NAMES),
        (
            *(draw(stations(name, draw(on), without)) for name in STATION_NAMES),
            *counted,
            draw(stations(EDGES, draw(on), without, edges)),
        ),
        classes,
        traffic,
        tuple(Pool(name, draw(SMALL), draw(st.none() | st.integers(0, 3)), counts.get(name)) for name in POOL_NAMES),
        hosts,
        sessions,
        Timeline() if Timeline in without else draw(timelines(places, tuple(sorted(delays)), tuple(traffic.mix))),
    )


def _hosts_of(hosts: tuple[Host, ...]) -> tuple[list[str], list[str]]:
    """Return the hosts that any station may have, and those that the nodes may have."""
    names = [host.name for host in hosts]
    return [name for name in names if name != MACHINES], names
