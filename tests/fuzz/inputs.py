"""Inputs by number: the same number is the same input everywhere, so a failure is found again."""

import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random

from tests.fuzz import mutations
from tests.fuzz.rules import Watch, broken_by_command, broken_by_reader
from tests.fuzz.targets import FILES, TEXTS

COMMANDS = tuple((Path(__file__).parent / "commands.txt").read_text(encoding="utf-8").splitlines()[1:])
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
