"""The kernel gives the same figures by whichever compiler it was made: zig's stands in where a machine has none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/capplan/simulator/compiled/kernel/kernel.c"
ZIG = "uv run --no-project --with ziglang>=0.15 python -m ziglang cc -mcpu=baseline"


@pytest.fixture(scope="module")
def by_zig(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment in which Python loads a kernel that zig compiled."""
    folder = tmp_path_factory.mktemp("zig")
    library = folder / "kernel.so"
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "from build_backend.kernel_backend import compile_library\n"
        "compile_library(Path(sys.argv[2]), Path(sys.argv[3]))"
    )
    around = {**os.environ, "CC": ZIG, "ZIG_LOCAL_CACHE_DIR": str(folder)}
    subprocess.run([sys.executable, "-c", program, str(ROOT), str(SOURCE), str(library)], env=around, check=True)
    return {**os.environ, "CAPPLAN_KERNEL": str(library)}


@pytest.mark.slow
def test_a_kernel_by_zig_gives_the_same_json(by_zig: dict[str, str]) -> None:
    question = ("simulate", "--dcs", "3", "--cass-nodes", "6", "--replications", "3", "--json")
    command = [str(Path(sys.executable).with_name("capplan")), *question]
    answers = [
        subprocess.run(command, env=around, capture_output=True, check=True).stdout
        for around in (by_zig, dict(os.environ))
    ]

    assert answers[0] == answers[1]


@pytest.mark.slow
def test_a_kernel_by_zig_walks_the_path_of_the_reference_engine(by_zig: dict[str, str]) -> None:
    around = {**by_zig, "CAPPLAN_TRUST_NETWORKS": "100"}
    tests = "tests/simulator/test_same_path.py"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", tests]
    ended = subprocess.run(command, cwd=ROOT, env=around, capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stdout + ended.stderr
