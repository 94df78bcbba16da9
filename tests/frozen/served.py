"""Start `capplan serve` on this machine, ask it some questions, and print their statuses and answers."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

FEDORA: dict[str, Any] = {"system": "fedora4", "nodes": 2}
THREE = "three.json"  # which an earlier command made
QUESTIONS: tuple[tuple[str, Any], ...] = (
    ("/systems", None),
    (
        "/predict",
        {"scenario": {**FEDORA, "tps": 40, "slo": ["read.p99<1s"]}, "engine": "analytic", "confidence": "80%"},
    ),
    ("/predict", {"fitted": THREE, "scenario": {"cass_nodes": 6, "clients": 64}, "engine": "analytic"}),
    ("/simulate", {"scenario": FEDORA, "duration": "2s", "warmup": 0.5, "seed": 3}),
    (
        "/size",
        {
            "scenario": {"system": "fedora4", "tps": 50},
            "sized": {"nodes": [1, 8]},
            "survive": ["node"],
            "engine": "analytic",
        },
    ),
    ("/predict", {"scenario": {"system": "fedora5"}}),
    ("/predict", {"scenario": FEDORA, "engin": "analytic"}),
    ("/healthz", None),
)
LONGEST_S = 120.0
LONGEST_INDENTED = 15_000


def asked(address: str, path: str, body: Any) -> tuple[int, str]:
    """Ask a question, and return the status and the body of the answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"Content-Type": "application/json"})  # loopback
    try:
        with urllib.request.urlopen(request, timeout=LONGEST_S) as answer:  # loopback
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def readable(text: str) -> str:
    """Return a JSON text with a line for each value, unless it is long or no JSON."""
    return json.dumps(json.loads(text), indent=1) if text[:1] in "[{" and len(text) < LONGEST_INDENTED else text


def main() -> None:
    """Print each question and its answer."""
    command = ["capplan", "serve", THREE, "--port", "0", "--processes", "1", "--time-limit", "2m"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert server.stderr is not None
    try:
        address = next(found[0] for line in server.stderr if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
        for path, body in QUESTIONS:
            status, text = asked(address, path, body)
            sys.stdout.write(f"{path} {json.dumps(body)}\n{status}\n{readable(text)}\n")
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=LONGEST_S)


if __name__ == "__main__":
    main()
