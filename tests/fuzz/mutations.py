"""Hostile inputs from valid ones: texts and bytes that are damaged, or have hostile values in place of their own."""

import json
import re
from pathlib import Path
from random import Random

_LONG = ("9" * 5000, "0." + "1" * 5000, "a" * 5000)
HOSTILE: tuple[str, ...] = (*json.loads((Path(__file__).parent / "hostile.json").read_text(encoding="utf-8")), *_LONG)
_TOKEN = re.compile(r"[A-Za-z_][\w-]*|[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|\"[^\"\n]*\"|\S")


def text(seed: str, random: Random) -> str:
    """Return a text with one to four changes."""
    for _ in range(random.choice((1, 1, 2, 4))):
        seed = random.choice((_token, _token, _token, _cut, _doubled, _line, _swapped, _characters))(seed, random)
    return seed


def content(seed: bytes, random: Random) -> bytes:
    """Return a content of a file with one to four changes; some of them are of bytes."""
    if random.random() < 0.8:
        changed = text(seed.decode("utf-8", "surrogateescape"), random)
        return changed.encode("utf-8", "surrogateescape" if _escapable(changed) else "surrogatepass")
    data = bytearray(seed)
    for _ in range(random.choice((1, 4, 16))):
        if data:
            data[random.randrange(len(data))] = random.randrange(256)
    head = random.choice((b"", b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\x00", b"\x1f\x8b", b"PAR1"))
    return head + bytes(data[: random.randrange(len(data) + 1)] if random.random() < 0.3 else data)


def _escapable(changed: str) -> bool:
    try:
        changed.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _token(seed: str, random: Random) -> str:
    """Replace a word, a number or a text in quotes."""
    found = list(_TOKEN.finditer(seed))
    if not found:
        return random.choice(HOSTILE)
    chosen = random.choice(found)
    hostile = random.choice(HOSTILE)
    if chosen[0].startswith('"') and random.random() < 0.7:
        hostile = f'"{hostile}"'
    return seed[: chosen.start()] + hostile + seed[chosen.end() :]


def _cut(seed: str, random: Random) -> str:
    return seed[: random.randrange(len(seed) + 1)]


def _doubled(seed: str, random: Random) -> str:
    start, end = sorted(random.randrange(len(seed) + 1) for _ in range(2))
    return seed[:end] + seed[start:end][:2000] * random.choice((1, 2, 20)) + seed[end:]


def _line(seed: str, random: Random) -> str:
    """Leave out a line."""
    lines = seed.split("\n")
    del lines[random.randrange(len(lines))]
    return "\n".join(lines)


def _swapped(seed: str, random: Random) -> str:
    lines = seed.split("\n")
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return "\n".join(lines)


def _characters(seed: str, random: Random) -> str:
    place = random.randrange(len(seed) + 1)
    return seed[:place] + random.choice(HOSTILE) + seed[place:]
