"""Faults of commands that keep a state of their own or listen: a lab, a live validation, and `capplan serve`."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from threading import Lock, Thread

from tests.faults.harness import ENDED, LONGEST_WAIT_S, Ended, Judged, complaints, ended, started

LAB = [sys.executable, "-m", "tests.faults.fake_lab"]
UP = "lab up --dcs 2 --cass-nodes 1 --rtt 5ms --heap 128M"
LONGEST_UP_S = 4.0
LIVE = [sys.executable, "-m", "tests.faults.fake_live"]
VALIDATE = "validate --live --report ."
LIVE_FOLDER, LONGEST_LIVE_S = ("live", "short"), 20.0
_POLL_S = 0.1
_ADDRESSES = Lock()  # of labs, which are always the same
_HERE = re.compile(r"http://127\.0\.0\.1:\d+")
_ASKED = json.dumps({"scenario": {"system": "fedora4", "tps": 100}, "duration": "3000s"}).encode()


def lab_signalled(number: signal.Signals, random: Random) -> Judged:
    """Send a signal to `lab up` at a random moment: `lab down` must leave nothing, and `lab up` work again."""
    with _ADDRESSES, tempfile.TemporaryDirectory() as name:
        folder, cache = Path(name), Path(name) / "cache"
        process = started(UP, folder, cache, start=LAB)
        time.sleep(random.uniform(0.5, LONGEST_UP_S))
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)
        found = complaints(ended(process), {0, ENDED[number], -number}, Judged())
        seen = _lab("status", folder, cache, {0, 1, 2}, found)
        if seen.code == 2 and "no lab is running" not in seen.err:
            found.torn.append(f"state of the lab: {seen.err[-300:]}")
        for command in ("down", *UP.split(" ", 1)[1:], "status", "down"):
            _lab(command, folder, cache, {0}, found)
        if left := _of_folder(cache):
            found.wrong.append(f"leaves processes: {left}")
        if (cache / "lab" / "running").exists():
            found.wrong.append("leaves files of the lab")
        return found


def lab_damaged(random: Random) -> Judged:
    """Damage the state of a lab that runs: it is refused by name, and with the state back, `lab down` ends it."""
    with _ADDRESSES, tempfile.TemporaryDirectory() as name:
        folder, cache, found = Path(name), Path(name) / "cache", Judged()
        _lab(UP.split(" ", 1)[1], folder, cache, {0}, found)
        path = cache / "lab" / "running" / "state.json"
        whole = path.read_bytes()
        path.write_bytes(whole[: random.randrange(1, len(whole) - 2)])
        for command in ("status", "rtt 10ms", "down"):
            _lab(command, folder, cache, {2}, found)
        path.write_bytes(whole)
        _lab("down", folder, cache, {0}, found)
        if left := _of_folder(cache):
            found.wrong.append(f"leaves processes: {left}")
        return found


def lab_twice(random: Random) -> Judged:
    """Start two labs at once: one is refused, or both find the other's."""
    with _ADDRESSES, tempfile.TemporaryDirectory() as name:
        folder, cache, found = Path(name), Path(name) / "cache", Judged()
        first = started(UP, folder, cache, start=LAB)
        time.sleep(random.uniform(0.0, 0.5))
        ends = [ended(first_or_second) for first_or_second in (first, started(UP, folder, cache, start=LAB))]
        for end in ends:
            complaints(end, {0, 2}, found)
        if sorted(end.code for end in ends) != [0, 2]:
            found.wrong.append(f"two labs end with {[end.code for end in ends]}")
        _lab("status", folder, cache, {0}, found)
        _lab("down", folder, cache, {0}, found)
        if left := _of_folder(cache):
            found.wrong.append(f"leaves processes: {left}")
        return found


def live_signalled(number: signal.Signals, random: Random) -> Judged:
    """Send a signal to `validate --live`: run again, it keeps all runs and predictions, and completes its report."""
    with tempfile.TemporaryDirectory() as name:
        folder, cache = Path(name), Path(name) / "cache"
        kept = cache.joinpath(*LIVE_FOLDER)
        process = started(VALIDATE, folder, cache, start=LIVE)
        with suppress(subprocess.TimeoutExpired):
            process.wait(random.uniform(0.5, LONGEST_LIVE_S))
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)
        end = ended(process)
        found = complaints(end, {0, 1, ENDED[number], -number}, Judged())
        before = {path: path.read_bytes().splitlines() for path in _kept_of_live(kept)}
        complaints(ended(started(VALIDATE, folder, cache, start=LIVE)), {0, 1}, found)
        for path, lines in before.items():
            if not path.is_file() or lines != path.read_bytes().splitlines()[: len(lines)]:
                found.lost.append(path.name)
        found.lost += [] if (folder / "live-validation.md").is_file() else ["live-validation.md"]
        found.wrong += [f"leaves {path.name} for good" for path in Path(name).rglob(".capplan-*")]
        return found


def _kept_of_live(folder: Path) -> list[Path]:
    """Return the files that the next run must keep; predictions count from their hash on, and one that ended, never."""
    key = folder / "protocol.json"
    if not key.is_file() or json.loads(key.read_text("utf-8"))["ended"]:
        return []
    predictions = ["predictions.json"] if (folder / "predictions.sha256").is_file() else []
    return [folder / name for name in ("small.csv", "measured.csv", *predictions) if (folder / name).is_file()]


def serve_signalled(number: signal.Signals, random: Random) -> Judged:
    """Send a signal to a server that answers a long request: it ends, with all of its processes."""
    with tempfile.TemporaryDirectory() as name:
        folder, found = Path(name), Judged()
        with (folder / "err").open("wb") as err:
            process = started("serve --port 0 --processes 1", folder, folder / "cache", stdout=err, stderr=err)
        address = _address(folder / "err")
        asking = Thread(target=_ask, args=(address,), daemon=True)
        asking.start()
        time.sleep(random.uniform(0.0, 5.0))
        process.send_signal(number)
        process.communicate(timeout=LONGEST_WAIT_S)
        asking.join(LONGEST_WAIT_S)
        text = (folder / "err").read_text(encoding="utf-8", errors="replace")
        complaints(Ended(process.returncode, b"", text), {0, ENDED[number], -number}, found)
        if not _in_time(lambda: not _of_group(process.pid)):
            found.wrong.append(f"leaves processes: {_of_group(process.pid)}")
            os.killpg(process.pid, signal.SIGKILL)
        return found


def _lab(command: str, folder: Path, cache: Path, codes: set[int], found: Judged) -> Ended:
    end = ended(started(f"lab {command}", folder, cache, start=LAB))
    complaints(end, codes, found)
    return end


def _ask(address: str) -> None:
    request = urllib.request.Request(f"{address}/simulate", _ASKED, {"Content-Type": "application/json"})
    with suppress(OSError, ValueError):
        urllib.request.urlopen(request, timeout=LONGEST_WAIT_S).read()


def _address(path: Path) -> str:
    """Return the address that a server says."""
    if not _in_time(lambda: _HERE.search(path.read_text(encoding="utf-8")) is not None):
        raise RuntimeError(f"the server does not start: {path.read_text(encoding='utf-8')}")
    return str(_HERE.findall(path.read_text(encoding="utf-8"))[0])


def _in_time(true: Callable[[], bool]) -> bool:
    """Wait until something is true; return whether it becomes so."""
    until = time.monotonic() + 120.0
    while not (so := true()) and time.monotonic() < until:
        time.sleep(_POLL_S)
    return so


def _of_group(group: int) -> list[int]:
    """Return the processes of a group that run."""
    return [pid for pid, stat, _ in _processes() if int(stat[2]) == group and stat[0] not in "ZX"]


def _of_folder(folder: Path) -> list[int]:
    """Return the processes whose command line names a folder."""
    return [pid for pid, stat, command in _processes() if str(folder) in command and stat[0] not in "ZX"]


def _processes() -> list[tuple[int, list[str], str]]:
    found = []
    for each in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            stat = (each / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
            found.append((int(each.name), stat, (each / "cmdline").read_text(encoding="utf-8", errors="replace")))
    return found


SERVICES: Mapping[str, Mapping[str, tuple[Callable[[Random], Judged], int]]] = {
    "lab": {
        "terminated (SIGTERM)": (partial(lab_signalled, signal.SIGTERM), 2),
        "interrupted (SIGINT)": (partial(lab_signalled, signal.SIGINT), 2),
        "killed (SIGKILL)": (partial(lab_signalled, signal.SIGKILL), 4),
        "kept results damaged": (lab_damaged, 2),
        "two runs at once": (lab_twice, 1),
    },
    "validate --live": {
        "terminated (SIGTERM)": (partial(live_signalled, signal.SIGTERM), 3),
        "interrupted (SIGINT)": (partial(live_signalled, signal.SIGINT), 3),
        "killed (SIGKILL)": (partial(live_signalled, signal.SIGKILL), 6),
    },
    "serve": {
        "terminated (SIGTERM)": (partial(serve_signalled, signal.SIGTERM), 2),
        "interrupted (SIGINT)": (partial(serve_signalled, signal.SIGINT), 2),
        "killed (SIGKILL)": (partial(serve_signalled, signal.SIGKILL), 2),
    },
}
"""Faults of services by kind, with how many of each."""
