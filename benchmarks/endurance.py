"""Run capplan for long and see whether memory grows and figures drift: `just endurance` (an hour and a half).

Three runs: 10^9 requests of M/M/4 in one simulation, a week of the default layout at 1,000 requests/s, and half an hour
of `capplan serve` with 50 clients. Each can run alone. Results are in docs/reference/endurance.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx2
import psutil
from settings import MM4_RATE_PER_S, MM4_SERVERS, MM4_SERVICE_S

from capplan.files import replace_file
from capplan.models.solver.single_station import erlang_c
from capplan.planner.serve.app import EXAMPLES

FOLDER = Path(__file__).parent
OUT = FOLDER.parent / "docs" / "reference" / "endurance.json"
CAPPLAN = Path(sys.executable).with_name("capplan")
MM4_REQUESTS, WEEK_S, CLIENTS, SERVE_S = 10**9, 7 * 86_400, 50, 1800
SAMPLE_S = 2.0


class Memory:
    """Resident memory of a process and those that it started, sampled while it runs."""

    def __init__(self, process: int) -> None:
        self._process, self._done, self.mib = psutil.Process(process), Event(), list[float]()
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._done.wait(SAMPLE_S):
            try:
                family = [self._process, *self._process.children(recursive=True)]
                self.mib.append(sum(each.memory_info().rss for each in family) / 2**20)
            except psutil.NoSuchProcess:
                continue

    def end(self) -> dict[str, float]:
        """Return the medians of the second tenth and of the last tenth: the first tenth starts up."""
        self._done.set()
        self._thread.join()
        tenth = max(1, len(self.mib) // 10)
        early, late = self.mib[tenth : 2 * tenth] or self.mib, self.mib[-tenth:]
        return {"early_mib": round(statistics.median(early), 1), "late_mib": round(statistics.median(late), 1)}


def mm4() -> dict[str, Any]:
    """Simulate 10^9 requests of M/M/4 in one run, and compare the mean with Erlang's C formula."""
    command = [sys.executable, "child.py", "capplan_engines", "mm4_compiled", str(MM4_REQUESTS), "1", "100000", "-1"]
    process = subprocess.Popen([*command, "capplan"], cwd=FOLDER, stdout=subprocess.PIPE, text=True)
    memory = Memory(process.pid)
    found = json.loads(process.communicate()[0])
    offered = MM4_RATE_PER_S * MM4_SERVICE_S
    wait_s = float(erlang_c(MM4_SERVERS, offered)) * MM4_SERVICE_S / (MM4_SERVERS - offered)
    error = found["mean_s"] / (MM4_SERVICE_S + wait_s) - 1
    return {"requests": found["requests"], "seconds": round(found["seconds"], 1), "error": error, **memory.end()}


def week() -> dict[str, Any]:
    """Simulate a week of the default layout at 1,000 requests/s, and an hour of another seed, and compare means."""
    hour, found = _simulated(3600, 2), _simulated(WEEK_S, 1)
    drift = found["mean_ms"] / hour["mean_ms"] - 1
    return {**found, "error": drift, "hour_late_mib": hour["late_mib"]}


def _simulated(seconds: int, seed: int) -> dict[str, Any]:
    question = ["--dcs", "3", "--cass-nodes", "6", "--tps", "1000", "--burst-ratio", "1", "--duration", f"{seconds}s"]
    options = ["--replications", "1", "--seed", str(seed), "--no-limits", "--json"]
    begin = time.monotonic()
    process = subprocess.Popen([CAPPLAN, "simulate", *question, *options], stdout=subprocess.PIPE, text=True)
    memory = Memory(process.pid)
    answer = json.loads(process.communicate()[0])
    classes = answer["classes"]
    return {
        "requests": classes["*"]["completed"],
        "seconds": round(time.monotonic() - begin, 1),
        "mean_ms": classes["acct"]["latency_ms"]["intended"]["mean"]["value"],
        **memory.end(),
    }


def serve(seconds: float = SERVE_S) -> dict[str, Any]:
    """Ask a server as 50 clients do that wait for each answer, and again when they are refused."""
    with tempfile.TemporaryDirectory() as folder, Path(folder, "err").open("w+", encoding="utf-8") as err:
        process = subprocess.Popen([CAPPLAN, "serve", "--port", str(_free_port())], stdout=err, stderr=err)
        memory = Memory(process.pid)
        try:
            address = _address(Path(folder, "err"))
            answers = asyncio.run(_ask(address, seconds))
            again = httpx2.post(f"{address}/predict", json=EXAMPLES["PredictRequest"], timeout=60).status_code
        finally:
            kept = memory.end()
            process.terminate()
            process.wait(60)
    tenth = seconds / 10
    early, late = (
        [took for at, took, status in answers if status == 200 and first <= at < first + tenth]
        for first in (tenth, seconds - tenth)
    )
    return {
        "requests": len(answers),
        "seconds": seconds,
        "statuses": dict(Counter(str(status) for _, _, status in answers)),
        "early_s": round(statistics.median(early), 3),
        "late_s": round(statistics.median(late), 3),
        "afterwards": again,
        **kept,
    }


async def _ask(address: str, seconds: float) -> list[tuple[float, float, int]]:
    """Return when each request was sent, how long it took, and the status of its answer."""
    begin, answers = time.monotonic(), list[tuple[float, float, int]]()
    bodies = [(path, EXAMPLES[name]) for path, name in (("predict", "PredictRequest"), ("simulate", "SimulateRequest"))]

    async def client(number: int, session: httpx2.AsyncClient) -> None:
        path, body = bodies[number % len(bodies)]
        while (sent := time.monotonic()) - begin < seconds:
            answer = await session.post(f"{address}/{path}", json=body)
            answers.append((sent - begin, time.monotonic() - sent, answer.status_code))
            if answer.status_code == 429:
                await asyncio.sleep(float(answer.headers.get("retry-after", 1)))

    async with httpx2.AsyncClient(timeout=120) as session, asyncio.TaskGroup() as group:
        for number in range(CLIENTS):
            group.create_task(client(number, session))
    return answers


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def _address(path: Path) -> str:
    """Return the address that a server says, when it says it."""
    for _ in range(600):
        if found := re.search(r"http://127\.0\.0\.1:\d+", path.read_text("utf-8")):
            return found[0]
        time.sleep(0.1)
    raise RuntimeError("the server does not start")


RUNS: dict[str, Callable[[], dict[str, Any]]] = {"mm4": mm4, "week": week, "serve": serve}


def main() -> int:
    """Run all, or those that are named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", nargs="*", choices=[*RUNS, []])
    for name in parser.parse_args().runs or RUNS:
        known = json.loads(OUT.read_text("utf-8")) if OUT.exists() else {}
        known[name] = RUNS[name]()
        print(name, json.dumps(known[name]), flush=True)
        replace_file(OUT, json.dumps(known, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
