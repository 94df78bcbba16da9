"""The kernel reads and writes nothing but its arrays, and does nothing that C leaves undefined.

A kernel that checks this itself runs random networks and the tests of the engines. `just trust` draws more networks:
the environment variable CAPPLAN_TRUST_NETWORKS says how many.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.simulator.checked_kernel import THREADS, compile_checked

NETWORKS = os.environ.get("CAPPLAN_TRUST_NETWORKS", "50")
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_kernel_stays_within_its_arrays(tmp_path: Path) -> None:
    around = {**compile_checked(tmp_path), "CAPPLAN_TRUST_NETWORKS": NETWORKS}
    tests = [f"tests/simulator/test_{name}.py" for name in ("same_path", "both_engines", "members")]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *tests]
    ended = subprocess.run(command, cwd=ROOT, env=around, capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.slow
def test_a_place_outside_an_array_is_an_error(tmp_path: Path) -> None:
    """What the bounds checks find is an exception that names the array."""
    program = (
        "from tests.simulator.test_both_engines import A, network, visit\n"
        "from capplan.simulator.compiled import engine\n"
        "active = engine.begin(engine.lowered(network(visit(2, 'a'), 100.0, A)), (0, 10**9), (1, 0))\n"
        "active.state = active.state._replace(stations=active.state.stations[:0])\n"
        "engine.run(active, trace=False, progress=None, sink=None)"
    )
    around = compile_checked(tmp_path)
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=around, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 1
    assert "RuntimeError" in ended.stderr
    assert "stations" in ended.stderr.splitlines()[-1]


IN_THREADS = """
import ctypes
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from tests.simulator.test_both_engines import A, network, visit
from capplan.simulator.compiled import engine

ready = Barrier(4)

def simulate(seed):
    active = engine.begin(engine.lowered(network(visit(2, 'a'), 100.0, A)), (0, 200 * 10**9), (seed, 0))
    ready.wait()
    engine.run(active, trace=False, progress=None, sink=None)

def count(_):
    ready.wait()
    ctypes.CDLL(sys.argv[1]).count(10**6)

with ThreadPoolExecutor(4) as pool:
    list(pool.map(count if sys.argv[1:] else simulate, range(4)))
"""
RACE = "static long all; void count(long times) { while (times--) all++; }\n"


@pytest.mark.trust
@pytest.mark.parametrize("race", [False, True], ids=["kernel", "a counter that threads share"])
def test_simulations_in_threads_share_nothing(race: bool, tmp_path: Path) -> None:
    """No two threads touch the same memory of the kernel. A deliberate race shows that the check works."""
    around, library = compile_checked(tmp_path, THREADS), tmp_path / "race.so"
    (tmp_path / "race.c").write_text(RACE, encoding="utf-8")
    subprocess.run(["gcc", "-shared", "-fPIC", *THREADS, str(tmp_path / "race.c"), "-o", str(library)], check=True)
    command = [sys.executable, "-c", IN_THREADS, *([str(library)] if race else [])]
    ended = subprocess.run(command, cwd=ROOT, env=around, capture_output=True, text=True, check=False)

    assert ("WARNING: ThreadSanitizer: data race" in ended.stderr) == race, ended.stderr[-3000:]
    assert ended.returncode == (66 if race else 0), ended.stderr[-3000:]
