"""Random valid questions: command lines of every verb that answers, about every kind of target.

The options of a layout are drawn from what its scenario declares: by the type of each field, and by `TEXTS` for texts
that a type does not describe. A new option is drawn without a change here, unless it is such a text.
"""

from __future__ import annotations

import atexit
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import tomli_w
from tests.planner import valid_tables
from tests.planner.valid_tables import SAMPLES, Random, one, shares, whole

from capplan.answers.results import STATISTICS
from capplan.cli.shell.scenario_command import flag, with_options
from capplan.cli.shell.target import Target, read_target
from capplan.errors import InputError
from capplan.layout.components import Machines, Ratios
from capplan.layout.fitted_file import DRAWS
from capplan.layout.situations import Losses
from capplan.layout.table_system import table_of
from capplan.models.cassandra.consistency import CONSISTENCY_LEVELS
from capplan.models.language.per_dc import is_per_dc
from capplan.models.language.scenario import Scenario, options_of
from capplan.models.language.step import RoutePolicy
from capplan.systems.registry import documented_systems, resolve, system

SEED = 35
FITTED = Path(__file__).parent / "fitted"
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
TRIES = 30  # layouts to draw until one breaks no rule; the last one is asked about all the same
GIVEN = 0.3  # probability that an option is given
UNCHECKED = 0.05  # probability that a layout is asked about without a look at its rules
OUTPUTS = (
    "cstress-mixed-closed.txt",
    "cstress-mixed-fixed1500.txt",
    "cstress-write-closed.txt",
    "ghz-rps500.json",
    "jmeter-closed.jtl",
    "k6-overloaded-points.json",
    "latte-6node-EACH_QUORUM.json",
    "latte-mixed-r3000.json",
    "wrk-closed.txt",
    "ycsb-mongodb-run.txt",
)
"""Outputs of load generators."""
MACHINES = ("cass_nodes", "front_nodes", "store_nodes", "nodes", "servers")

Words = tuple[str, ...]
Fields = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """A question: one command line, or several whose answers are compared, and the files that they name.

    Attributes
    ----------
    number
        Its number.
    kind
        A verb, or what the answers of the lines are compared for.
    lines
        Command lines; a word that is the name of a file stands for its path.
    files
        Texts of files by name.
    about
        The target.
    """

    number: int
    kind: str
    lines: tuple[Words, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    about: str = ""

    def __str__(self) -> str:
        lines = "; ".join(" ".join(("capplan", *line)) for line in self.lines)
        return f"{self.number} {self.kind}: {lines}" + "".join(f"\n--- {name}\n{it}" for name, it in self.files.items())


def _rtt(random: Random, dcs: int) -> str:
    if dcs < 2 or random.random() < 0.6:
        return f"{10 ** random.uniform(-1, 3):.3g}ms"
    pairs = [f"dc{a}-dc{b}" for a in range(1, dcs + 1) for b in range(a + 1, dcs + 1)]
    return ",".join(f"{pair}={10 ** random.uniform(-1, 3):.3g}ms" for pair in pairs)


def _level(random: Random, dcs: int) -> str:
    del dcs
    return str(one(random, CONSISTENCY_LEVELS))


def _of(*values: str) -> Callable[[Random, int], str]:
    return lambda random, _: str(one(random, values))


_LINKS = _of("client", "internode", "client+internode", "none")


TEXTS: Mapping[str, Callable[[Random, int], str]] = {
    "consistency_read": _level,
    "consistency_write": _level,
    "client_share": shares,
    "encryption": _LINKS,
    "vpn": _of("user", "kernel"),
    "distance": lambda random, _: f"{whole(random, 1, 20_000)}km",
    "rtt": _rtt,
    "mix": lambda random, _: f"auth={whole(random, 1, 4)},acct={whole(random, 2, 20)}",
    "region": _of("us-east", "us-west", "eu", "asia"),
    "speculative_retry": _of("99p", "p95", "none"),
    "cluster": _of("cassandra v4", "cassandra v5"),
    "gc": _of("0.6%@45ms", "2%@80ms sd=30ms n=400 rate=3000/s", "none"),
    "heap": _of("8GiB", "31GiB"),
    "collector": _of("cms", "G1"),
    "keep": _of("2h", "2d", "90d"),
    "compaction": _of("STCS", "LCS", "TWCS", "TWCS:1h", "UCS", "UCS:L10"),
    "compression": _of("30%", "1"),
}
"""Texts of options whose type is any text."""
WHOLE = {
    "dcs": (1, 4),
    "rf": (1, 7),
    "clients": (1, 1_000_000),
    "native_threads": (1, 1024),
    "connections": (1, 64),
    "in_flight": (1, 32_768),
    "front_workers": (1, 512),
    "node_cores": (1, 64),
    "front_cores": (1, 64),
    "stream_messages": (1, 1000),
    "column_bytes": (1, 2048),
}
"""Usual ranges of whole numbers; those of others are 1 to 12."""
RATES = (10.0, 1e7)
ONE_LOSS = (
    "--at",
    "20s",
    "--for",
    "5s",
    "--after",
    "10s",
    "--budget",
    "100ms",
    "--replications",
    "1",
    "--processes",
    "1",
)


def drawn(kind: type[Scenario], random: Random, given: float = GIVEN) -> dict[str, str | bool]:
    """Return values of some options of a scenario, as they are typed, by field."""
    hints = get_type_hints(kind, include_extras=True)
    names = [name for name in options_of(kind) if name != "slo"]
    dcs = whole(random, *WHOLE["dcs"]) if "dcs" in names else 1
    found: dict[str, str | bool] = {"dcs": str(dcs)} if dcs > 1 or random.random() < 0.5 else {}
    if "dcs" not in names:
        found = {}
    for name in names:
        if name == "dcs" or random.random() > given:
            continue
        if any(other in found for other in options_of(kind)[name].replaces):
            continue
        found[name] = value_of(name, hints[name], random, dcs)
    if "collector" in found and "gc" not in found:
        found.setdefault("heap", TEXTS["heap"](random, dcs))
    return found


def value_of(name: str, hint: Any, random: Random, dcs: int) -> str | bool:
    """Return a value of an option, as it is typed."""
    if name in TEXTS:
        return TEXTS[name](random, dcs)
    metadata = list(_metadata(hint))
    kinds = set(_plain(hint))
    if bool in kinds:
        return bool(random.random() < 0.5)
    if is_per_dc(hint.__origin__ if get_origin(hint) is Annotated else hint):
        low, high = WHOLE.get(name, (1, 12))
        many = dcs if dcs > 1 and random.random() < 0.5 else 1
        return "/".join(str(whole(random, low, high)) for _ in range(many))
    if Literal in {get_origin(each) for each in kinds}:
        return str(one(random, [word for each in kinds for word in get_args(each)]))
    if int in kinds:
        return str(whole(random, *WHOLE.get(name, (1, 12))))
    if float in kinds:
        return _number(metadata, random)
    raise NotImplementedError(f"{name} is any text: say in TEXTS how to draw one")


def _number(metadata: Sequence[Any], random: Random) -> str:
    """Return a number within the bounds of a field; a rate where it has none."""
    low = next(
        (
            float(each)
            for rule in metadata
            for each in [getattr(rule, "ge", getattr(rule, "gt", None))]
            if each is not None
        ),
        None,
    )
    high = next((float(each) for rule in metadata for each in [getattr(rule, "le", None)] if each is not None), None)
    if low is None or high is None:
        if any("share" in repr(each) for each in metadata):
            return f"{random.random():.2f}"
        return f"{float(np.exp(random.uniform(*np.log(RATES)))):.4g}"
    if high <= 1:
        return str(one(random, ["0", "1", f"{random.random():.2f}"]))
    low = max(low, high * 1e-6, 0.2)
    return f"{float(np.exp(random.uniform(np.log(low), np.log(min(high, low * 1e3))))):.3g}"


def _metadata(hint: Any) -> Any:
    """Yield what a type is annotated with, its parts included; options excluded."""
    if get_origin(hint) is Annotated:
        for each in hint.__metadata__:
            yield from getattr(each, "metadata", [each])
    for each in get_args(hint):
        if get_origin(each) in (Annotated, Union, UnionType):
            yield from _metadata(each)


def _plain(hint: Any) -> Any:
    """Yield the types that a type may be, without what they are annotated with."""
    if get_origin(hint) is Annotated:
        yield from _plain(hint.__origin__)
    elif get_origin(hint) in (Union, UnionType):
        for each in get_args(hint):
            yield from _plain(each)
    else:
        yield hint


def objective(random: Random, classes: Sequence[str], capacity: bool = True) -> str:
    """Return an objective about a latency or the capacity."""
    if capacity and random.random() < 0.15:
        return f"capacity>={whole(random, 100, 50_000)}"
    statistic = {"p999": "p99.9"}.get(name := str(one(random, STATISTICS)), name)
    return f"{one(random, classes)}.{statistic}<{10 ** random.uniform(0, 2.5):.3g}ms"


TARGETS = (*(each.name for each in documented_systems()), *(path.name for path in sorted(FITTED.glob("*.json"))))
"""Systems, and fitted files."""
RATED = tuple(name for name in TARGETS if name != "vcider")
"""Targets that have rates: one document has ratios of throughput only."""
NETWORK = "network.toml"
PLACE = "FOLDER/"
"""Stands in files for the folder of a question."""


def write_fitted(folder: Path) -> None:
    """Write the fitted files, with as many draws as a fit has: those that are kept, and more near each of them."""
    for path in FITTED.glob("*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        kept = np.array(content["draws"])
        more = [0.9 * kept + 0.1 * np.roll(kept, step, axis=0) for step in range(DRAWS // len(kept))]
        content["draws"] = np.concatenate(more).tolist()
        (folder / path.name).write_text(json.dumps(content), encoding="utf-8")


@cache
def folder() -> Path:
    """Return the folder of this process with the fitted files; it is removed at exit."""
    made = tempfile.TemporaryDirectory()
    atexit.register(made.cleanup)
    write_fitted(Path(made.name))
    return Path(made.name)


@cache
def _target(name: str) -> Target:
    return read_target(str(folder() / name) if name.endswith(".json") else name)


@dataclass(frozen=True)
class Layout:
    """A target with options that break no rule, if a few tries found some."""

    name: str
    options: Mapping[str, str | bool]

    @property
    def ratios_only(self) -> bool:
        return system(self.of.system).component(Ratios).of is not None

    @property
    def fitted(self) -> bool:
        """Whether the target is a fitted file."""
        return self.name.endswith(".json")

    @property
    def of(self) -> Scenario:
        return _target(self.name).scenario

    @property
    def scenario(self) -> Scenario:
        return with_options(self.of, dict(self.options))

    @property
    def closed(self) -> bool:
        """Whether clients wait for their answers, so that no rate is offered; not of a layout that breaks a rule."""
        with suppress(InputError):
            return table_of(system(self.of.system)) is not None and getattr(self.scenario, "clients", None) is not None
        return False

    @property
    def classes(self) -> Sequence[str]:
        """Request classes in the traffic; all of them, if the layout breaks a rule."""
        with suppress(InputError):
            return system(self.of.system).classes(self.scenario)
        return list(system(self.of.system).reported)

    def check(self) -> None:
        """Check that the layout has a network.

        Raises
        ------
        InputError
            If it breaks a rule.
        """
        case = resolve(self.scenario, _target(self.name).fitted)
        case.system.classes(case.scenario)
        if not self.ratios_only:
            case.system.network(case.scenario, case.system.median_values(case.fitted, case.scenario), 1.0)

    def toml(self, **more: Any) -> str:
        """Return it as a scenario file, which keeps what is given."""
        given = {**self.scenario.given(), **more}
        return tomli_w.dumps({key: list(it) if isinstance(it, tuple) else it for key, it in given.items()})

    def words(self, **changes: str) -> Words:
        """Return the target and its options, as they are typed."""
        found: list[str] = [self.name]
        for name, value in {**self.options, **changes}.items():
            if isinstance(value, bool):
                found.append(flag(name) if value else f"--no-{flag(name)[2:]}")
            else:
                found += [flag(name), value]
        return tuple(found)

    def ranged(self, **changes: str) -> Words:
        """Return the target and its options for a verb that takes several values of each, one for all data centres."""
        return Layout(self.name, {name: _as_list(name, it) for name, it in self.options.items()}).words(**changes)

    def with_rate(self, rate: str) -> Layout:
        """Return it with an offered rate, and no other."""
        return replace(_without_rates(self), options={**_without_rates(self).options, "tps": rate})


def layout(random: Random, names: Sequence[str] = TARGETS, without: Sequence[str] = ()) -> Layout:
    """Return a layout of one of some targets, with options other than `without`; a few break a rule."""
    name = str(one(random, names))
    given = float(one(random, [0.1, GIVEN, 0.5]))
    for _ in range(1 if random.random() < UNCHECKED else TRIES):
        options = drawn(type(_target(name).scenario), random, given)
        found = Layout(name, {key: it for key, it in options.items() if key not in without})
        try:
            found.check()
        except InputError:
            continue
        break
    return found


def rate_of(random: Random, high: float = RATES[1]) -> str:
    """Return a rate, as it is typed; it may be far above any capacity."""
    return f"{float(np.exp(random.uniform(np.log(RATES[0]), np.log(high)))):.4g}"


def _slo(random: Random, of: Layout, chance: float = 0.4, capacity: bool = True) -> Words:
    if of.ratios_only or random.random() > chance:
        return ()
    return ("--slo", objective(random, of.classes, capacity))


def _engine(random: Random, simulated: float = 0.1) -> Words:
    if random.random() < simulated:
        return ("--engine", "compiled")
    return ("--engine", "analytic")


def _losses(of: Layout) -> list[str]:
    dcs = getattr(of.scenario, "dcs", 1)
    has_front = np.any(getattr(of.scenario, "front_nodes", 1))
    there = {"dc": dcs > 1, "front": has_front}
    kinds = [each for each in system(of.of.system).component(Losses).kinds if there.get(each, True)]
    return [*kinds, *(f"dc{number}" for number in range(1, dcs + 1) if dcs > 1)]


def _lost(random: Random, of: Layout, chance: float) -> Words:
    kinds: list[str] = []
    with suppress(InputError):
        kinds = _losses(of)
    if not kinds or random.random() > chance:
        return ()
    several = random.random() < 0.3 and len(kinds) > 1
    return ("--lose", ",".join(random.permutation(kinds)[:2]) if several else str(one(random, kinds)))


Questions = tuple[str, tuple[Words, ...], dict[str, str]]
FORMATS: Mapping[str, tuple[Words, ...]] = {
    "predict": ((), ("--explain",), ("--csv",), ("--plot", "plot.html")),
    "simulate": ((), ("--csv",), ("--plot", "plot.html"), ("--trace", "trace.csv"), ("--trace", "trace.parquet")),
    "sweep": ((), ("--csv",), ("--out", "rows.csv"), ("--out", "rows.parquet"), ("--plot", "plot.html")),
    "compare": ((),),
    "check": ((), ("--quiet",), ("--junit", "verdicts.xml")),
    "size": ((), ("--explain",), ("--plot", "plot.html")),
    "outages": ((), ("--plot", "plot.html")),
    "next-test": ((),),
    "demand": ((), ("--explain",)),
    "drift": ((),),
    "verify": ((),),
    "calibrate": ((),),
    "backtest": ((),),
    "validate": ((), ("--csv",), ("--report", ".")),
    "systems": ((), ("--csv",)),
    "evidence list": ((), ("--csv",)),
    "evidence show": ((), ("--csv",)),
    "evidence audit": ((), ("--csv",)),
    "evidence import": ((),),
}
"""What each verb prints and writes beside JSON: the screen without options."""
PROPOSALS = ("one.html", "two.pdf", "three.xlsx")


def verb_of(line: Words) -> str:
    """Return the verb of a command line."""
    return " ".join(line[: 2 if line[0] == "evidence" else 1])


def _printed(random: Random, line: Words) -> tuple[Words, ...]:
    """Return a command line that prints JSON, or another format, or both, which are compared."""
    other = one(random, FORMATS[verb_of(line)])
    kept = tuple(word for word in line if word != "--explain")
    as_json, chance = (*kept, "--json"), random.random()
    if chance < 0.6:
        return (as_json,)
    return ((*line, *other),) if chance < 0.75 else (as_json, (*line, *other))


def _predict(random: Random) -> Questions:
    of = layout(random)
    simulated = _engine(random)
    budget = ("--budget", "20ms") if "compiled" in simulated else ()
    if (lost := _lost(random, of, 0.15)) and of.closed:
        of = of.with_rate(rate_of(random))
    growth = ("--growth", "20%") if "tps" in of.options and not of.ratios_only and random.random() < 0.3 else ()
    words = ("predict", *of.words(), *_slo(random, of), *lost, *growth, *simulated, *budget)
    return of.name, _printed(random, words), {}


def _simulate(random: Random) -> Questions:
    of = layout(random, RATED)
    load: Words = ()
    lasts = 0.5
    if "clients" not in of.options:
        rate = float(np.exp(random.uniform(np.log(20), np.log(20_000))))
        of, load, lasts = _without_rates(of), ("--tps", f"{rate:.4g}"), 4000 / rate
    more = ("--replications", "2") if random.random() < 0.2 else ()
    words = ("simulate", *of.words(), *load, "--duration", f"{lasts:.3g}s", *more, "--processes", "1")
    return of.name, _printed(random, words), {}


def _without_rates(of: Layout) -> Layout:
    """Return a layout without an offered rate."""
    options = options_of(type(of.of))
    rates = {"tps", *options["tps"].replaces, *(name for name, each in options.items() if "tps" in each.replaces)}
    if system(of.of.system).name == "arion":
        rates -= {"clients"}
    return Layout(of.name, {key: it for key, it in of.options.items() if key not in rates})


def _sweep(random: Random) -> Questions:
    of = layout(random, RATED)
    kind = type(of.of)
    ranged = dict(of.options)
    field_ = str(one(random, [name for name in options_of(kind) if name not in ("slo", "client_share", "rtt", "dcs")]))
    hint = get_type_hints(kind, include_extras=True)[field_]
    values = {str(value_of(field_, hint, random, 1)) for _ in range(2)}
    replaced = {field_, *options_of(kind)[field_].replaces}
    replaced |= {name for name, each in options_of(kind).items() if field_ in each.replaces}
    asked_about = [of]
    if not {"True", "False"} & values and field_ != "mix":
        ranged = {name: it for name, it in ranged.items() if name not in replaced}
        asked_about = [Layout(of.name, {**ranged, field_: each}) for each in values]
        ranged[field_] = ",".join(sorted(values))
    words = Layout(of.name, ranged)
    load = ("--load", "20%,80%") if random.random() < 0.3 and words == _without_rates(words) else ()
    files = {}
    if not of.fitted and any("/" in str(it) for name, it in of.options.items() if name not in TEXTS):
        with suppress(InputError):  # a file says what each data centre has
            files = {"layout.toml": of.toml()}
            words = Layout("layout.toml", {field_: ranged[field_]} if field_ in ranged else {})
    common = [name for name in of.classes if all(name in each.classes for each in asked_about)]
    slo = ("--slo", objective(random, common)) if common and random.random() < 0.4 else ()
    return of.name, _printed(random, ("sweep", *words.ranged(), *load, *slo, "--processes", "1")), files


def _count_of(name: str, value: str | bool) -> str | bool:
    """Return the first count of several data centres, and the last of their round trips; other values as they are."""
    if name == "rtt":
        return str(value).rpartition("=")[2]
    return value if isinstance(value, bool) or name in TEXTS else value.partition("/")[0]


def _as_list(name: str, value: str | bool) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(_count_of(name, value))


def _compare(random: Random) -> Questions:
    of = layout(random, RATED)
    other = layout(random, [of.name], ("dcs",) if random.random() < 0.5 else ())
    rate = rate_of(random)
    files = {}
    try:
        its = [each.with_rate(rate) if each.closed or random.random() < 0.3 else each for each in (of, other)]
        files = {name: each.toml() for name, each in zip(("first.toml", "second.toml"), its, strict=True)}
    except InputError:
        return _compare(random)
    using = ("--fitted", of.name) if of.fitted else ()
    words = ("compare", "first.toml", "second.toml", *using, *_engine(random, 0.0))
    return of.name, _printed(random, words), files


def _survived(random: Random, of: Layout) -> list[str]:
    kinds = list(system(of.of.system).component(Losses).kinds)
    if getattr(of.of, "dcs", 1) < 2 and "dcs" not in of.options:
        kinds = [each for each in kinds if each != "dc"]
    return [each for each in kinds if random.random() < 0.4]


def _check(random: Random, rate: str = "") -> Questions:
    of = layout(random, RATED).with_rate(rate or rate_of(random))
    its = [objective(random, of.classes) for _ in range(int(random.integers(1, 3)))]
    try:
        text = _specification(random, of, its)
    except InputError:
        return _check(random, rate)
    return of.name, _printed(random, ("check", "check.toml", *_engine(random, 0.0))), {"check.toml": text}


def _specification(random: Random, of: Layout, objectives: Sequence[str]) -> str:
    """Return a file that `check` reads."""
    own: Fields = {"survive": _survived(random, of), "confidence": str(one(random, ["90%", "80%", "95%"]))}
    if of.fitted:
        own["fitted"] = f"{PLACE}{of.name}"
    return of.toml(slo=list(objectives), check=own)


def _sizing(random: Random, of: Layout, rate: str, most: int = 5) -> tuple[Words, dict[str, str]]:
    """Return a target, ranges of its machines, what they must carry and survive, and files of prices or shapes."""
    ranges = {}
    usual = int(np.max(getattr(of.of, "rf", None) or 1))
    copies = int(_as_list("rf", of.options.get("rf", str(usual)))) if random.random() < 0.9 else 1
    for name in (name for name in MACHINES if name in options_of(type(of.of))):
        low = max(int(random.integers(1, 5)), 1 if name == "front_nodes" else copies)
        ranges[name] = f"{low}..{low + int(random.integers(1, most))}"
    lost = _survived(random, of)
    survive = ("--survive", ",".join(lost)) if lost else ()
    more = ("--growth", "30%/y", "--years", "2") if random.random() < 0.2 else ()
    priced, files = _prices(random, of)
    slo = _slo(random, of, capacity=False)
    rest = ("--tps", rate, *survive, *more, *priced, *slo, "--engine", "analytic", "--processes", "1")
    return (*of.ranged(**ranges), *rest), files


def _prices(random: Random, of: Layout) -> tuple[Words, dict[str, str]]:
    """Return options with the machines for sale, and their files."""
    machines, chance = system(of.of.system).component(Machines).kinds, random.random()
    cores = {name for each in machines.values() for name in (each.cores, each.speed)}
    if chance < 0.2:
        prices = {kind: whole(random, 100, 20_000) for kind in machines}
        content = {"currency": "EUR", "period": "year", "machines": prices}
        return ("--prices", "prices.toml"), {"prices.toml": tomli_w.dumps(content)}
    if chance > 0.5 or None in cores or cores & of.options.keys():
        return (), {}
    shapes_ = {
        kind: {f"m{cores}": {"cores": cores, "price": 100 * cores} for cores in (4, 16)[: int(random.integers(1, 3))]}
        for kind in machines
    }
    for_sale = {"currency": "EUR", "period": "month", "shapes": shapes_}
    return ("--shapes", "shapes.toml"), {"shapes.toml": tomli_w.dumps(for_sale)}


def _size(random: Random) -> Questions:
    of = _without_rates(layout(random, RATED, MACHINES))
    words, files = _sizing(random, of, str(whole(random, 100, 50_000)))
    return of.name, _printed(random, ("size", *words)), files


def _proposal(random: Random, rate: str = "") -> Questions:
    """Ask for proposals in every format; few of unequal data centres, which take minutes."""
    of = _without_rates(layout(random, RATED, MACHINES))
    of = _alike(of) if random.random() < 0.9 else of
    words, files = _sizing(random, of, rate or str(whole(random, 100, 20_000)), 3)
    outs = [name for name in PROPOSALS if random.random() < 0.5]
    line = ("proposal", *words, "--customer", "A", *(word for name in ("out.json", *outs) for word in ("-o", name)))
    return of.name, (line,), files


def _alike(of: Layout) -> Layout:
    """Return a layout whose data centres have equally many clients."""
    return replace(of, options={name: it for name, it in of.options.items() if name != "client_share"})


def _verify(random: Random) -> Questions:
    """Ask for a small proposal, and to compute it again."""
    of = _alike(_without_rates(layout(random, RATED, MACHINES)))
    words, files = _sizing(random, of, str(whole(random, 20, 2000)), 2)
    line = ("proposal", *words, "--customer", "A", "-o", "out.json")
    using = ("--fitted", of.name) if of.fitted else ()
    return of.name, (line, *_printed(random, ("verify", "out.json", *using, "--processes", "1"))), files


def _drift(random: Random) -> Questions:
    """Ask for an answer, and whether what was measured later fits it."""
    rate, asked_by = whole(random, 50, 10_000), str(one(random, ["predict", "size", "check"]))
    of = _without_rates(layout(random, RATED, MACHINES if asked_by == "size" else ())).with_rate(str(rate))
    files = {"measured.csv": valid_tables.runs_at(random, rate, of.classes)}
    line: Words = ("predict", *of.words(), "--engine", "analytic")
    if asked_by == "size":
        words, more = _sizing(random, _without_rates(of), str(rate), 2)
        line, files = ("size", *words), files | more
    if asked_by == "check":
        try:
            files["check.toml"] = _specification(random, of, [objective(random, of.classes)])
        except InputError:
            return _drift(random)
        line = ("check", "check.toml", "--engine", "analytic")
    drift = _printed(random, ("drift", "answer.json", "measured.csv"))
    return of.name, ((*line, "--json", ">", "answer.json"), *drift), files


def _outages(random: Random) -> Questions:
    of = layout(random, RATED)
    if of.closed or random.random() < 0.3:
        of = of.with_rate(rate_of(random))
    words = ("outages", *of.words(), *_lost(random, of, 0.5), *_slo(random, of, 0.2), *ONE_LOSS, "--engine", "analytic")
    return of.name, _printed(random, words), {}


def _next_test(random: Random) -> Questions:
    of = layout(random, [name for name in TARGETS if name.endswith(".json")])
    kind = type(of.of)
    names = [name for name in options_of(kind) if name not in ("slo", "client_share", "cluster", "rtt")]
    hints = get_type_hints(kind, include_extras=True)
    texts = []
    for name in random.permutation(names)[: int(random.integers(1, 3))]:
        values = {
            _as_list(str(name), value_of(str(name), hints[str(name)], random, 1)).partition(" ")[0] for _ in range(2)
        }
        texts.append(f"{name}={','.join(sorted(values))}")
    words = ("next-test", *of.words(), "--candidates", " ".join(texts), *_slo(random, of, 0.3))
    return of.name, _printed(random, words), {}


def _demand(random: Random) -> Questions:
    length_min = whole(random, 1, 300)
    growth = sorted(whole(random, 1, 40) for _ in range(int(random.integers(1, 3))))
    demand: Fields = {
        "subscribers": whole(random, 1000, 50_000_000),
        "growth": [f"{each}%" for each in growth] if len(growth) > 1 else f"{growth[0]}%",
        "years": int(random.integers(1, 6)),
        "busy_hour": {
            "sessions": round(random.uniform(0.02, 0.9) * min(60 / length_min, 3), 4),
            "length_s": f"{length_min}min",
            "reauthentication_s": f"{whole(random, 1, 24)}h",
        },
        "connections": {"count": whole(random, 1, 5000), "lifetime_s": f"{whole(random, 1, 48)}h"},
        "data": {
            "row_bytes": [100 * int(random.integers(1, 5)), 100 * int(random.integers(5, 50))],
            "retention_s": f"{whole(random, 1, 365)}d",
            "subscriber_bytes": whole(random, 100, 10_000),
            "compaction": str(one(random, ["LCS", "STCS"])),
            "disk_gib": whole(random, 50, 4000),
        },
    }
    for optional in ("connections", "data"):
        if random.random() < 0.4:
            del demand[optional]
    met: Words = ()
    if random.random() < 0.6:
        met = ("--cass-nodes", str(whole(random, 3, 30)), "--dcs", str(whole(random, 1, 4)))
    return "demand", _printed(random, ("demand", "demand.toml", *met)), {"demand.toml": tomli_w.dumps(demand)}


FITTED_SYSTEMS = ("cassandra", "two-tier")


def _table(random: Random, of: str = "") -> str:
    """Return a load-test table, made up or published; of a system, if one is named."""
    return valid_tables.table(random, of) if random.random() < 0.7 else valid_tables.published(random, of)


def _audit(random: Random) -> Questions:
    if random.random() < 0.1:
        name = str(one(random, [each.name for each in documented_systems()]))
        return name, _printed(random, ("evidence", "audit", name)), {}
    return "table", _printed(random, ("evidence", "audit", "table.csv")), {"table.csv": _table(random)}


def _import(random: Random) -> Questions:
    """Import outputs of load generators, tables and documents, and audit the table that is made."""
    files = {f"{number}.csv": _table(random) for number in range(int(random.integers(0, 3)))}
    outputs = [str(SAMPLES / name) for name in random.permutation(OUTPUTS)[: int(random.integers(0, 3))]]
    names = [*files, *outputs] or [str(one(random, [name for name in RATED if not name.endswith(".json")]))]
    known = ("--set", f"cass_nodes={whole(random, 3, 12)},rf={whole(random, 1, 3)}") if outputs and not files else ()
    made = str(one(random, ["made.csv", "made.parquet"]))
    line = ("evidence", "import", *names, *known)
    if random.random() < 0.3:
        return "table", (line,), files
    kept = _printed(random, (*line, "-o", made))[:1]
    return "table", (*kept, *_printed(random, ("evidence", "audit", made))), files


def _calibrate(random: Random) -> Questions:
    of = str(one(random, FITTED_SYSTEMS))
    line = _printed(random, ("calibrate", of, "--evidence", "table.csv", "-o", "fitted.json"))[:1]
    lines = (*line, ("predict", "fitted.json", "--engine", "analytic", "--json"))
    return "table", lines, {"table.csv": _table(random, of)}


def _backtest(random: Random) -> Questions:
    of = str(one(random, FITTED_SYSTEMS))
    rows = _table(random, of)
    words = ("backtest", of, "table.csv", "--train", valid_tables.half_of(random, rows))
    return "table", _printed(random, words), {"table.csv": rows}


def _validate(random: Random) -> Questions:
    name = str(one(random, [each.name for each in documented_systems()]))
    return name, _printed(random, ("validate", name)), {}


def _documents(random: Random) -> Questions:
    """Ask what is known of the systems."""
    its = one(random, documented_systems())
    row = str(one(random, [each.id for each in its.evidence]))
    line = one(
        random,
        [
            ("systems",),
            ("evidence", "list", its.name),
            ("evidence", "show", its.name, row),
            ("evidence", "plot", "table.csv", "--plot", "plot.html"),
        ],
    )
    if "plot" in line:
        rows = _table(random)
        return "table", ((*line, "--statistic", valid_tables.statistic_of(rows)),), {"table.csv": rows}
    return its.name, _printed(random, line), {}


def network(random: Random) -> str:
    """Return a network: a front that hands requests to replicated nodes, in a few shapes."""
    nodes = whole(random, 1, 20)
    size = int(random.integers(1, min(nodes, 5) + 1))
    laws = [
        {"kind": "exponential", "mean_s": f"{10 ** random.uniform(-2, 1):.3g}ms"},
        {"kind": "erlang", "mean_s": f"{10 ** random.uniform(-2, 1):.3g}ms", "stages": 3},
        {"kind": "deterministic", "value_s": f"{10 ** random.uniform(-2, 1):.3g}ms"},
        {"kind": "lognormal", "mean_s": f"{10 ** random.uniform(-2, 1):.3g}ms", "shape_scv": 2.0},
    ]

    def visit(station: str, name: str, **more: str) -> Fields:
        return {"kind": "visit", "station": station, "name": name, "demand": one(random, laws), **more}

    fan: Fields = {
        "kind": "replica_set",
        "members": "replicas",
        "among": "nodes",
        "size": size,
        "step": {
            "kind": "fan_out",
            "over": "replicas",
            "member": "one",
            "needed": int(random.integers(1, size + 1)),
            "step": visit("nodes", "work", member="one"),
        },
    }
    hop: Fields = {"kind": "delay", "name": "hop", "duration": one(random, laws)}
    policy = str(one(random, get_args(RoutePolicy)))
    picked: Fields = {"kind": "pick", "member": "it", "among": "nodes", "policy": policy}
    picked["step"] = visit("nodes", "own", member="it")
    body: Fields = one(random, [fan, picked, {"kind": "sequence", "steps": [hop, fan]}])
    flow: Fields = {"kind": "sequence", "steps": [visit("front", "parse"), body]}
    pools = []
    if random.random() < 0.4:
        pools = [{"name": "workers", "size": whole(random, 1, 500)}]
        flow = {"kind": "acquire", "pool": "workers", "step": flow}
    traffic: Fields = {"kind": "open", "rate_per_s": whole(random, 5, 3000), "mix": {"read": 1.0}}
    if random.random() < 0.25:
        think = {"kind": "exponential", "mean_s": "10ms"}
        traffic = {"kind": "closed", "clients": whole(random, 1, 1000), "think": think, "mix": {"read": 1.0}}
    stations = [
        {"name": "front", "servers": whole(random, 1, 32), "discipline": str(one(random, ["fcfs", "ps"]))},
        {
            "name": "nodes",
            "servers": whole(random, 1, 16),
            "discipline": str(one(random, ["fcfs", "ps"])),
            "count": nodes,
        },
    ]
    its = {"name": "made-up", "stations": stations, "classes": [{"name": "read", "flow": flow}], "traffic": traffic}
    return tomli_w.dumps({**its, **({"pools": pools} if pools else {})})


def _network(random: Random) -> Questions:
    text = network(random)
    slo = ("--slo", objective(random, ["read"])) if random.random() < 0.3 else ()
    budget = ("--engine", "compiled", "--budget", "20ms") if random.random() < 0.3 else ("--engine", "analytic")
    line: Words = ("predict", NETWORK, *slo, *budget)
    if random.random() < 0.15:
        line = ("simulate", NETWORK, "--duration", "1s", "--processes", "1")
    elif random.random() < 0.1:
        line = ("outages", NETWORK, "--lose", "nodes/1", *ONE_LOSS)
    lines = tuple(each for each in _printed(random, line) if line[0] != "predict" or "--plot" not in each)
    return "network", lines or ((*line, "--json"),), {NETWORK: text}


def _agree(random: Random) -> Questions:
    """Ask the same in several verbs: a layout at a rate that it carries, or not."""
    of = _without_rates(layout(random, RATED))
    if of.fitted:  # a sweep of a fitted file has one count for all data centres
        of = replace(of, options={name: _count_of(name, it) for name, it in of.options.items()})
    try:
        of = of.with_rate(rate_of(random)) if of.closed else of
        files = {"same.toml": of.toml()}
    except InputError:
        return _agree(random)
    using = ("--fitted", of.name) if of.fitted else ()
    return (
        of.name,
        (
            ("predict", *of.words(), "--engine", "analytic", "--json"),
            ("sweep", *(of.ranged() if of.fitted else ("same.toml",)), "--processes", "1", "--json"),
            ("compare", "same.toml", "same.toml", *using, "--engine", "analytic", "--json"),
        ),
        files,
    )


def _more(random: Random) -> Questions:
    """Ask about a layout, and about one with a machine more of a kind in each data centre."""
    of = _without_rates(layout(random, RATED))
    try:
        its = of.scenario
    except InputError:
        return _more(random)
    counts = {name: np.atleast_1d(getattr(its, name)) for name in MACHINES if getattr(its, name, None)}
    grown = str(one(random, [name for name, each in counts.items() if each.all()]))
    more = of.words(**{grown: "/".join(str(each + 1) for each in counts[grown])})
    lines = tuple(("predict", *words, "--engine", "analytic", "--json") for words in (of.words(), more))
    return of.name, lines, {}


def _load(random: Random) -> Questions:
    """Ask about a layout at rising shares of its capacity."""
    of = _without_rates(layout(random, RATED))
    return of.name, (("sweep", *of.ranged(), "--load", "10%,30%,50%,70%,85%", "--processes", "1", "--json"),), {}


KINDS: Mapping[str, tuple[float, Callable[[Random], Questions]]] = {
    "predict": (0.09, _predict),
    "simulate": (0.06, _simulate),
    "sweep": (0.05, _sweep),
    "compare": (0.05, _compare),
    "check": (0.06, _check),
    "size": (0.06, _size),
    "outages": (0.036, _outages),
    "next-test": (0.065, _next_test),
    "demand": (0.06, _demand),
    "audit": (0.05, _audit),
    "import": (0.065, _import),
    "network": (0.09, _network),
    "verbs agree": (0.035, _agree),
    "more machines": (0.03, _more),
    "more load": (0.02, _load),
    "drift": (0.065, _drift),
    "documents": (0.03, _documents),
    "verify": (0.095, _verify),
    "validate": (0.026, _validate),
    "calibrate": (0.028, _calibrate),
    "backtest": (0.03, _backtest),
    "proposal": (0.03, _proposal),
}
"""Shares of the questions, and what draws them."""
SLOW = ("calibrate", "backtest", "proposal", "verify", "validate", "outages")
FIRST = 60
"""Questions that the default tests ask: none of a slow kind."""


def asked(number: int) -> Asked:
    """Return a question; the same number always asks the same."""
    random = np.random.default_rng([SEED, number])
    names = [name for name in KINDS if number >= FIRST or name not in SLOW]
    weights = np.array([KINDS[name][0] for name in names])
    kind = str(random.choice(names, p=weights / weights.sum()))
    about, lines, files = KINDS[kind][1](random)
    return Asked(number, kind, lines, files, about)
