"""Random valid questions: command lines of every verb that answers, about every kind of target.

The options of a layout are drawn from what its scenario declares: by the type of each field, and by `TEXTS` for texts
that a type does not describe. A new option is drawn without a change here, unless it is such a text.
"""

from __future__ import annotations

import atexit
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import tomli_w

from capplan.cli.shell.scenario_command import flag, with_options
from capplan.cli.shell.target import Target, read_target
from capplan.evidence.load_test_row import LATENCIES, LoadTestRow
from capplan.evidence.row_validation import columns_of
from capplan.layout.fitted_file import DRAWS
from capplan.models.cassandra.consistency import CONSISTENCY_LEVELS
from capplan.models.errors import InputError
from capplan.models.language.per_dc import is_per_dc
from capplan.models.language.scenario import Scenario, options_of
from capplan.models.results import STATISTICS
from capplan.systems.registry import documented_systems, system

SEED = 32
FITTED = Path(__file__).parent / "fitted"
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
TRIES = 30  # layouts to draw until one breaks no rule; the last one is asked about all the same
GIVEN = 0.3  # probability that an option is given
MACHINES = ("cass_nodes", "front_nodes", "store_nodes", "nodes", "servers")

Random = np.random.Generator
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


def _whole(random: Random, low: int, high: int) -> int:
    """Return a whole number; each order of magnitude is equally likely."""
    return round(float(np.exp(random.uniform(np.log(low), np.log(high)))))


def _one(random: Random, values: Sequence[Any]) -> Any:
    return values[int(random.integers(len(values)))]


def _rtt(random: Random, dcs: int) -> str:
    if dcs < 2 or random.random() < 0.6:
        return f"{10 ** random.uniform(-1, 2):.3g}ms"
    pairs = [f"dc{a}-dc{b}" for a in range(1, dcs + 1) for b in range(a + 1, dcs + 1)]
    return ",".join(f"{pair}={10 ** random.uniform(-1, 2):.3g}ms" for pair in pairs)


def _level(random: Random, dcs: int) -> str:
    del dcs
    return str(_one(random, CONSISTENCY_LEVELS))


def _of(*values: str) -> Callable[[Random, int], str]:
    return lambda random, _: str(_one(random, values))


_LINKS = _of("client", "internode", "client+internode", "none")


def _shares(random: Random, dcs: int) -> str:
    cuts = sorted(random.integers(0, 101, dcs - 1).tolist())
    return "/".join(f"{high - low}%" for low, high in zip([0, *cuts], [*cuts, 100], strict=True))


TEXTS: Mapping[str, Callable[[Random, int], str]] = {
    "consistency_read": _level,
    "consistency_write": _level,
    "client_share": _shares,
    "encryption": _LINKS,
    "vpn": _of("user", "kernel"),
    "distance": lambda random, _: f"{_whole(random, 1, 20_000)}km",
    "rtt": _rtt,
    "mix": lambda random, _: f"auth={_whole(random, 1, 4)},acct={_whole(random, 2, 20)}",
    "region": _of("us-east", "us-west", "eu", "asia"),
    "speculative_retry": _of("99p", "p95", "none"),
    "cluster": _of("cassandra v4", "cassandra v5"),
    "gc": _of("0.6%@45ms", "2%@80ms sd=30ms n=400 rate=3000/s", "none"),
    "heap": _of("8GiB", "31GiB"),
    "collector": _of("cms", "G1"),
}
"""Texts of options whose type is any text."""
WHOLE = {
    "dcs": (1, 4),
    "rf": (1, 5),
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
RATES = (10.0, 1e6)
ONE_LOSS = (
    "--at",
    "20s",
    "--for",
    "5s",
    "--after",
    "5s",
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
    dcs = _whole(random, *WHOLE["dcs"]) if "dcs" in names else 1
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
    if is_per_dc(hint):
        low, high = WHOLE.get(name, (1, 12))
        many = dcs if dcs > 1 and random.random() < 0.4 else 1
        return "/".join(str(_whole(random, low, high)) for _ in range(many))
    if Literal in {get_origin(each) for each in kinds}:
        return str(_one(random, [word for each in kinds for word in get_args(each)]))
    if int in kinds:
        return str(_whole(random, *WHOLE.get(name, (1, 12))))
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
        return str(_one(random, ["0", "1", f"{random.random():.2f}"]))
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


def objective(random: Random, classes: Sequence[str]) -> str:
    """Return an objective about a latency, the drop rate or the capacity."""
    if random.random() < 0.15:
        return f"capacity>={_whole(random, 100, 50_000)}"
    statistic = {"p999": "p99.9"}.get(name := str(_one(random, STATISTICS)), name)
    return f"{_one(random, classes)}.{statistic}<{10 ** random.uniform(0, 2.5):.3g}ms"


TARGETS = (*(each.name for each in documented_systems()), *(path.name for path in sorted(FITTED.glob("*.json"))))
"""Systems, and fitted files."""
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
        return system(self.of.system).ratios_only

    @property
    def of(self) -> Scenario:
        return _target(self.name).scenario

    @property
    def scenario(self) -> Scenario:
        return with_options(self.of, dict(self.options))

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


def layout(random: Random, names: Sequence[str] = TARGETS, without: Sequence[str] = ()) -> Layout:
    """Return a layout of one of some targets, with options other than `without`."""
    name = str(_one(random, names))
    given = float(_one(random, [0.1, GIVEN, 0.5]))
    for _ in range(TRIES):
        options = drawn(type(_target(name).scenario), random, given)
        found = Layout(name, {key: it for key, it in options.items() if key not in without})
        try:
            _ = found.scenario
        except InputError:
            continue
        break
    return found


def _slo(random: Random, of: Layout, chance: float = 0.4) -> Words:
    classes = list(system(of.of.system).reported)
    return ("--slo", objective(random, classes)) if random.random() < chance and not of.ratios_only else ()


def _engine(random: Random, simulated: float = 0.1) -> Words:
    if random.random() < simulated:
        return ("--engine", "compiled")
    return ("--engine", "analytic")


def _losses(of: Layout) -> list[str]:
    return [*system(of.of.system).losses, *(["dc1", "dc2"] if "dcs" in options_of(type(of.of)) else [])]


def _lost(random: Random, of: Layout, chance: float) -> Words:
    kinds = _losses(of)
    if not kinds or random.random() > chance:
        return ()
    several = random.random() < 0.3 and len(kinds) > 1
    return ("--lose", ",".join(random.permutation(kinds)[:2]) if several else str(_one(random, kinds)))


Questions = tuple[str, tuple[Words, ...], dict[str, str]]


def _predict(random: Random) -> Questions:
    of = layout(random)
    simulated = _engine(random)
    budget = ("--budget", "20ms") if "compiled" in simulated else ()
    words = ("predict", *of.words(), *_slo(random, of), *_lost(random, of, 0.15), *simulated, *budget, "--json")
    return of.name, (words,), {}


def _simulate(random: Random) -> Questions:
    of = layout(random)
    load: Words = ()
    lasts = 0.5
    if "clients" not in of.options and not of.ratios_only:
        rate = float(np.exp(random.uniform(np.log(20), np.log(20_000))))
        load, lasts = ("--tps", f"{rate:.4g}"), 4000 / rate
    more = ("--replications", "2") if random.random() < 0.2 else ()
    words = ("simulate", *_without_rates(of, bool(load)).words(), *load, "--duration", f"{lasts:.3g}s", *more)
    return of.name, ((*words, "--processes", "1", "--json"),), {}


def _without_rates(of: Layout, really: bool = True) -> Layout:
    """Return a layout without an offered rate."""
    options = options_of(type(of.of))
    rates = {"tps", *options["tps"].replaces, *(name for name, each in options.items() if "tps" in each.replaces)}
    if system(of.of.system).name == "arion":
        rates -= {"clients"}
    return Layout(of.name, {key: it for key, it in of.options.items() if key not in rates}) if really else of


def _sweep(random: Random) -> Questions:
    of = layout(random)
    kind = type(of.of)
    ranged = dict(of.options)
    field_ = str(_one(random, [name for name in options_of(kind) if name not in ("slo", "client_share", "rtt")]))
    hint = get_type_hints(kind, include_extras=True)[field_]
    values = {str(value_of(field_, hint, random, 1)) for _ in range(2)}
    if not {"True", "False"} & values and field_ != "mix":
        ranged[field_] = ",".join(sorted(values))
    words = Layout(of.name, {key: _as_list(it) for key, it in ranged.items()})
    load = ("--load", "20%,80%") if random.random() < 0.3 and words == _without_rates(words) else ()
    return of.name, (("sweep", *words.words(), *load, *_slo(random, of), "--processes", "1", "--json"),), {}


def _as_list(value: str | bool) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


def _compare(random: Random) -> Questions:
    of = layout(random)
    other = layout(random, [of.name], ("dcs",) if random.random() < 0.5 else ())
    files = {}
    try:
        files = {"first.toml": of.toml(), "second.toml": other.toml()}
    except InputError:
        return _compare(random)
    fitted = of.name
    using = ("--fitted", fitted) if fitted.endswith(".json") else ()
    return of.name, (("compare", "first.toml", "second.toml", *using, *_engine(random, 0.0), "--json"),), files


def _survived(random: Random, of: Layout) -> list[str]:
    kinds = list(system(of.of.system).losses)
    return [each for each in kinds if random.random() < 0.4]


def _check(random: Random) -> Questions:
    of = layout(random)
    own: Fields = {"survive": _survived(random, of), "confidence": str(_one(random, ["90%", "80%", "95%"]))}
    if of.name.endswith(".json"):
        own["fitted"] = f"{PLACE}{of.name}"
    its = [objective(random, list(system(of.of.system).reported)) for _ in range(int(random.integers(1, 3)))]
    try:
        text = of.toml(slo=its, check=own)
    except InputError:
        return _check(random)
    return of.name, (("check", "check.toml", *_engine(random, 0.0), "--json"),), {"check.toml": text}


def _size(random: Random, verb: str = "size") -> Questions:
    of = layout(random, without=("tps", "clients", "tps_mean", *MACHINES))
    names = [name for name in MACHINES if name in options_of(type(of.of))]
    ranges = {}
    for name in names:
        low = int(random.integers(1, 5))
        ranges[name] = f"{low}..{low + int(random.integers(1, 5))}"
    rate = f"{_whole(random, 100, 50_000)}"
    lost = _survived(random, of)
    survive = ("--survive", ",".join(lost)) if lost else ()
    more = ("--growth", "30%/y", "--years", "2") if random.random() < 0.2 else ()
    rest = ("--tps", rate, *survive, *more, *_slo(random, of), "--engine", "analytic", "--processes", "1")
    words = (verb, *Layout(of.name, {key: _as_list(it) for key, it in of.options.items()}).words(**ranges), *rest)
    return of.name, ((*words, "--json") if verb == "size" else (*words, "--customer", "A", "-o", "out.json"),), {}


def _proposal(random: Random) -> Questions:
    return _size(random, "proposal")


def _outages(random: Random) -> Questions:
    of = layout(random)
    words = ("outages", *of.words(), *_lost(random, of, 0.5), *_slo(random, of, 0.2), *ONE_LOSS, "--engine", "analytic")
    return of.name, ((*words, "--json"),), {}


def _next_test(random: Random) -> Questions:
    fitted = [name for name in TARGETS if name.endswith(".json")]
    of = layout(random, fitted)
    kind = type(of.of)
    names = [name for name in options_of(kind) if name not in ("slo", "client_share", "cluster", "rtt")]
    hints = get_type_hints(kind, include_extras=True)
    texts = []
    for name in random.permutation(names)[: int(random.integers(1, 3))]:
        values = {_as_list(value_of(str(name), hints[str(name)], random, 1)) for _ in range(2)}
        texts.append(f"{name}={','.join(sorted(values))}")
    words = ("next-test", *of.words(), "--candidates", " ".join(texts), *_slo(random, of, 0.3))
    return of.name, ((*words, "--json"),), {}


def _demand(random: Random) -> Questions:
    demand: Fields = {
        "subscribers": _whole(random, 1000, 50_000_000),
        "growth": [f"{_whole(random, 1, 40)}%" for _ in range(int(random.integers(1, 4)))],
        "years": int(random.integers(1, 6)),
        "busy_hour": {
            "sessions": round(random.uniform(0.05, 3), 2),
            "length_s": f"{_whole(random, 1, 300)}min",
            "reauthentication_s": f"{_whole(random, 1, 24)}h",
        },
        "connections": {"count": _whole(random, 1, 5000), "lifetime_s": f"{_whole(random, 1, 48)}h"},
        "data": {
            "row_bytes": [100 * int(random.integers(1, 5)), 100 * int(random.integers(5, 50))],
            "retention_s": f"{_whole(random, 1, 365)}d",
            "subscriber_bytes": _whole(random, 100, 10_000),
            "compaction": str(_one(random, ["LCS", "STCS", "TWCS"])),
            "disk_gib": _whole(random, 50, 4000),
        },
    }
    for optional in ("connections", "data"):
        if random.random() < 0.4:
            del demand[optional]
    met: Words = ()
    if random.random() < 0.6:
        met = ("--cass-nodes", str(_whole(random, 3, 30)), "--dcs", str(_whole(random, 1, 4)))
    return "demand", (("demand", "demand.toml", *met, "--json"),), {"demand.toml": tomli_w.dumps(demand)}


def table(random: Random) -> str:
    """Return a load-test table of 3 to 30 rows: one workload, in which a few columns vary, with missing cells."""
    columns = columns_of(LoadTestRow)
    figures = {name for name in columns if name.startswith(("latency_", "throughput"))}
    dcs = int(random.integers(1, 4))
    usual = {name: _cell(name, random, dcs) for name in columns if name not in figures}
    varied = [
        str(each)
        for each in random.permutation([name for name in usual if name != "dcs"])[: int(random.integers(1, 4))]
    ]
    empty = {str(name) for name in columns if random.random() < 0.35}
    empty -= {"throughput_tps", "rf"} if random.random() < 0.9 else set()
    most, unloaded_ms = 10 ** random.uniform(3, 5), 10 ** random.uniform(-0.5, 1.5)
    lines = [",".join(columns)]
    for number in range(int(random.integers(3, 31))):
        cells = {**usual, **{name: _cell(name, random, dcs) for name in varied}}
        cells["run_id"] = f"run {number}"
        clients = int(cells["clients"])
        rate = min(most, clients / unloaded_ms * 1e3) * float(np.exp(0.05 * random.standard_normal()))
        if cells["load_kind"] != "closed":
            rate = min(rate, float(cells["offered_tps"]))
        mean = (
            max(unloaded_ms, clients / rate * 1e3)
            if cells["load_kind"] == "closed"
            else unloaded_ms * (1 + 3 * rate / most)
        )
        factors = dict(zip(LATENCIES, (1.0, 0.9, 1.2, 1.6, 2.0, 3.0, 5.0, 8.0), strict=True))
        cells |= {name: f"{mean * factor:.4g}" for name, factor in factors.items()} | {"throughput_tps": f"{rate:.5g}"}
        lines.append(",".join("" if name in empty or random.random() < 0.02 else cells[name] for name in columns))
    return "\n".join(lines) + "\n"


def _cell(name: str, random: Random, dcs: int) -> str:
    """Return a cell of a column that is no figure."""
    column = columns_of(LoadTestRow)[name]
    if column.kind == "choice":
        return str(_one(random, column.choices))
    if column.kind == "flag":
        return str(_one(random, ["yes", "no"]))
    if column.kind == "per_dc":
        low, high = (1, 3) if name == "rf" else (3, 9)
        many = dcs if random.random() < 0.3 else 1
        return "/".join(str(int(random.integers(low, high + 1))) for _ in range(many))
    if column.kind == "count":
        known = {"dcs": dcs, "clients": _whole(random, 1, 2000), "repeat": int(random.integers(1, 4))}
        return str(known.get(name, int(random.integers(0, 3))))
    if column.kind == "number":
        return _figure(name, random)
    return {"request_class": str(_one(random, ["all", "read", "write"]))}.get(name, name)


def _figure(name: str, random: Random) -> str:
    """Return a cell with a number."""
    known = {
        "read_fraction": ["0", "1", "0.5", "0.8"],
        "think_time_ms": ["0", "", "10"],
        "rtt_ms": ["0.2", "1", "8", "60"],
        "node_cores": ["1", "4", "16", "64"],
        "front_cores": ["2", "16"],
    }
    if name in known:
        return str(_one(random, known[name]))
    return f"{random.uniform(1, 99):.3g}" if name.endswith("_percent") else str(_whole(random, 100, 20_000))


def _audit(random: Random) -> Questions:
    return "table", (("evidence", "audit", "table.csv", "--json"),), {"table.csv": table(random)}


def _calibrate(random: Random) -> Questions:
    of = str(_one(random, ["cassandra", "two-tier"]))
    line = ("calibrate", of, "--evidence", "table.csv", "-o", "fitted.json", "--json")
    return "table", (line, ("predict", "fitted.json", "--engine", "analytic", "--json")), {"table.csv": table(random)}


def _backtest(random: Random) -> Questions:
    of, kept = str(_one(random, ["cassandra", "two-tier"])), f"clients <= {_whole(random, 10, 1000)}"
    return "table", (("backtest", of, "table.csv", "--train", kept, "--json"),), {"table.csv": table(random)}


def network(random: Random) -> str:
    """Return a network: a front that hands requests to replicated nodes, in a few shapes."""
    nodes = _whole(random, 1, 20)
    size = int(random.integers(1, min(nodes, 5) + 1))
    laws = [
        {"kind": "exponential", "mean_s": f"{10 ** random.uniform(-2, 1):.3g}ms"},
        {"kind": "erlang", "mean_s": f"{10 ** random.uniform(-2, 1):.3g}ms", "stages": 3},
        {"kind": "deterministic", "value_s": f"{10 ** random.uniform(-2, 1):.3g}ms"},
        {"kind": "lognormal", "mean_s": f"{10 ** random.uniform(-2, 1):.3g}ms", "shape_scv": 2.0},
    ]

    def visit(station: str, name: str, **more: str) -> Fields:
        return {"kind": "visit", "station": station, "name": name, "demand": _one(random, laws), **more}

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
    hop: Fields = {"kind": "delay", "name": "hop", "duration": _one(random, laws)}
    picked: Fields = {"kind": "pick", "member": "it", "among": "nodes", "policy": "uniform"}
    picked["step"] = visit("nodes", "own", member="it")
    body: Fields = _one(random, [fan, picked, {"kind": "sequence", "steps": [hop, fan]}])
    flow: Fields = {"kind": "sequence", "steps": [visit("front", "parse"), body]}
    pools = []
    if random.random() < 0.4:
        pools = [{"name": "workers", "size": _whole(random, 1, 500)}]
        flow = {"kind": "acquire", "pool": "workers", "step": flow}
    traffic: Fields = {"kind": "open", "rate_per_s": _whole(random, 5, 3000), "mix": {"read": 1.0}}
    if random.random() < 0.25:
        think = {"kind": "exponential", "mean_s": "10ms"}
        traffic = {"kind": "closed", "clients": _whole(random, 1, 1000), "think": think, "mix": {"read": 1.0}}
    stations = [
        {"name": "front", "servers": _whole(random, 1, 32), "discipline": str(_one(random, ["fcfs", "ps"]))},
        {
            "name": "nodes",
            "servers": _whole(random, 1, 16),
            "discipline": str(_one(random, ["fcfs", "ps"])),
            "count": nodes,
        },
    ]
    its = {"name": "made-up", "stations": stations, "classes": [{"name": "read", "flow": flow}], "traffic": traffic}
    return tomli_w.dumps({**its, **({"pools": pools} if pools else {})})


def _network(random: Random) -> Questions:
    text = network(random)
    slo = ("--slo", objective(random, ["read"])) if random.random() < 0.3 else ()
    budget = ("--engine", "compiled", "--budget", "20ms") if random.random() < 0.3 else ("--engine", "analytic")
    line = _one(
        random,
        [
            ("predict", "network.toml", *slo, *budget),
            ("predict", "network.toml", *slo, *budget),
            ("simulate", "network.toml", "--duration", "1s", "--processes", "1"),
            ("outages", "network.toml", "--lose", "nodes/1", *ONE_LOSS),
        ],
    )
    return "network", ((*line, "--json"),), {"network.toml": text}


def _agree(random: Random) -> Questions:
    """Ask the same in several verbs: a layout at a rate that it carries, or not."""
    of = _without_rates(
        layout(random, [name for name in TARGETS if not system(_target(name).scenario.system).ratios_only])
    )
    try:
        files = {"same.toml": of.toml()}
    except InputError:
        return _agree(random)
    fitted = of.name
    using = ("--fitted", fitted) if fitted.endswith(".json") else ()
    swept = Layout(of.name, {key: _as_list(it) for key, it in of.options.items()})
    return (
        of.name,
        (
            ("predict", *of.words(), "--engine", "analytic", "--json"),
            ("sweep", *swept.words(), "--processes", "1", "--json"),
            ("compare", "same.toml", "same.toml", *using, "--engine", "analytic", "--json"),
        ),
        files,
    )


def _more(random: Random) -> Questions:
    """Ask about a layout, and about one with a machine more of a kind."""
    rated = [name for name in TARGETS if not system(_target(name).scenario.system).ratios_only]
    of = _without_rates(layout(random, rated))
    try:
        its = of.scenario
    except InputError:
        return _more(random)
    names = [name for name in MACHINES if isinstance(getattr(its, name, None), int) and getattr(its, name)]
    grown = str(_one(random, names))
    more = of.words(**{grown: str(getattr(its, grown) + 1)})
    lines = tuple(("predict", *words, "--engine", "analytic", "--json") for words in (of.words(), more))
    return of.name, lines, {}


def _load(random: Random) -> Questions:
    """Ask about a layout at rising shares of its capacity."""
    rated = [name for name in TARGETS if not system(_target(name).scenario.system).ratios_only]
    of = _without_rates(layout(random, rated))
    swept = Layout(of.name, {key: _as_list(it) for key, it in of.options.items()})
    return of.name, (("sweep", *swept.words(), "--load", "10%,30%,50%,70%,85%", "--processes", "1", "--json"),), {}


KINDS: Mapping[str, tuple[float, Callable[[Random], Questions]]] = {
    "predict": (0.28, _predict),
    "simulate": (0.08, _simulate),
    "sweep": (0.07, _sweep),
    "compare": (0.07, _compare),
    "check": (0.06, _check),
    "size": (0.07, _size),
    "outages": (0.07, _outages),
    "next-test": (0.04, _next_test),
    "demand": (0.02, _demand),
    "audit": (0.03, _audit),
    "network": (0.06, _network),
    "verbs agree": (0.05, _agree),
    "more machines": (0.05, _more),
    "more load": (0.03, _load),
    "calibrate": (0.008, _calibrate),
    "backtest": (0.008, _backtest),
    "proposal": (0.004, _proposal),
}
"""Shares of the questions, and what draws them."""
SLOW = ("calibrate", "backtest", "proposal")
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
