"""Inputs by number: the same number is the same input everywhere, so a failure is found again."""

import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random

from tests.fuzz import mutations
from tests.fuzz.rules import Watch, broken_by_command, broken_by_reader
from tests.fuzz.targets import FILES, TEXTS

# Command lines that are refused, or answered fast; a word of each is replaced by a hostile one.
COMMANDS = (
    "predict fedora4 --engine analytic --tps 1000 --nodes 6 --slo read.p99<1s --confidence 50%",
    "predict fedora4 --engine analytic --lose node --json --seed 1",
    "predict arion --engine analytic --csv",
    "simulate fedora4 --tps 100 --duration 1s --warmup 0s --replications 1 --precision p99<50% --engine compiled --csv",
    "simulate fedora4 --tps 100 --duration 1s --trace t.csv --json --horizon finite",
    "sweep fedora4 --draws 2 --processes 1 --nodes 3..6:3 --load 50%,80% --csv",
    "sweep fedora4 --draws 2 --processes 1 --tps 100,200 --out t.csv",
    "size fedora4 --engine analytic --processes 1 --tps 500 --nodes 3..4 --confidence 90% --growth 10%/y --years 1",
    "demand demand.toml --json",
    "demand demand.toml --dcs 2 --cass-nodes 6/6 --rf 3/3",
    "check --engine analytic --quiet --junit t.xml objectives.toml",
    "compare --engine analytic --json scenario.toml network.toml",
    "drift answer.json measured.csv --json",
    "evidence import measured.csv -o t.csv --set note=x",
    "evidence import sample.txt -o t.parquet --json",
    "evidence audit measured.csv --csv",
    "evidence list arion --status measured --json",
    "evidence show arion r1 --json",
    "systems fedora4 --json",
    "verify --processes 1 proposal.json",
    "outages --engine analytic --at 15s --for 1s --after 1s --budget 10ms --processes 1 fedora4",
    "proposal -o t.json --customer X --tps 500 --engine analytic --processes 1 fedora4",
    "calibrate nosystem --seed 1 --output t.json",
    "validate nosystem --report t",
    "calibrate cassandra --evidence own.csv --train clients<1 --seed 1 --output t.json",
    "backtest cassandra own.csv --train clients<1 --seed 1 --plot t.html",
    "next-test --candidates nodes=3,6 --run 0min --setup 4h --rank none --figure capacity --seed 1 fedora4",
    "evidence audit own.csv --json",
    "evidence plot own.csv --plot t.html --statistic p98",
    "evidence schema --json",
    "lab up --dcs 10 --cass-nodes 2 --rf 500 --rtt 20ms --version 9 --heap 64M",
    "lab rtt 20ms",
    "lab kill dc1-2",
    "lab start dc1-2",
    "lab status --json",
    "collect rtt --requests 10 -o t.csv",
    "collect cassandra-read --duration 1s --warm-up 1s --level ONE --row-bytes 100B --clients 1,4 --rates 20% -o t.csv",
    "serve --host 203.0.113.1 --port 1 --token x --time-limit 0s --body-limit 1MB --processes 1",
)
EACH_COMMAND, EACH_FILE = 100, 3
"""Every which input is a command line, and every which other one a file: they take longer than texts."""
SLOW = ("verify", "outages", "proposal", "compare", "check", "size", "sweep")
"""Verbs that work for seconds when nothing is wrong: their last word is always damaged."""


@dataclass(frozen=True)
class Failure:
    """An input that breaks a rule."""

    number: int
    target: str
    shown: str
    rule: str


def tried(number: int, folder: Path, watch: Watch) -> Failure | None:
    """Try the input of a number; return it if it breaks a rule."""
    random = Random(number)
    if number % EACH_COMMAND == 0:
        return _command(number, random, watch)
    if number % EACH_FILE == 0:
        return _file(number, random, folder, watch)
    return _text(number, random, watch)


def _text(number: int, random: Random, watch: Watch) -> Failure | None:
    name = random.choice(list(TEXTS))
    value = mutations.text(random.choice(TEXTS[name].seeds), random)
    return _failure(number, name, value, broken_by_reader(TEXTS[name].read, value, watch))


def _file(number: int, random: Random, folder: Path, watch: Watch) -> Failure | None:
    name = random.choice(list(FILES))
    seed = random.choice(FILES[name].seeds)
    value = mutations.content(_bytes(seed), random)
    path = folder / f"input{seed.suffix}"
    path.write_bytes(value)
    return _failure(number, f"{name} {seed.name}", repr(value), broken_by_reader(FILES[name].read, path, watch))


def _command(number: int, random: Random, watch: Watch) -> Failure | None:
    words = random.choice(COMMANDS).split()
    places = [place for place in range(1, len(words)) if not words[place].startswith("-")]
    chosen = (words[0] in SLOW and len(words) - 1) or random.choice(places)
    hostile = random.choice(mutations.HOSTILE)
    words[chosen] = hostile if words[0] in SLOW else random.choice((hostile, mutations.text(words[chosen], random)))
    if random.random() < 0.1:
        words[random.randrange(len(words))] = hostile
    return _failure(number, words[0], repr(words), broken_by_command(words, watch))


def _failure(number: int, name: str, shown: str, rule: str | None) -> Failure | None:
    return None if rule is None else Failure(number, name, shown[:300], rule)


@lru_cache(maxsize=64)
def _bytes(path: Path) -> bytes:
    return path.read_bytes()


def prepared(folder: Path) -> None:
    """Put the files that command lines name into a folder."""
    for name, key, place in (
        ("demand.toml", "demand", 0),
        ("objectives.toml", "check", 0),
        ("answer.json", "saved answer", 0),
        ("measured.csv", "load tests", 0),
        ("proposal.json", "proposal", 0),
        ("network.toml", "scenario or network", 1),
        ("scenario.toml", "scenario or network", -1),
        ("sample.txt", "output of a tool", 1),
        ("own.csv", "spreadsheet", 1),
    ):
        shutil.copy(FILES[key].seeds[place], folder / name)
