"""The kernel gives the same figures by whichever compiler it was made: zig's stands in where a machine has none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/capplan/simulator/compiled/kernel/kernel.c"
ZIG = "uv run --no-project --with ziglang>=0.15 python -m ziglang cc -mcpu=baseline"


@pytest.mark.slow
def test_a_kernel_by_zig_walks_the_path_of_the_reference_engine(tmp_path: Path) -> None:
    library = tmp_path / "kernel.so"
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "from build_backend.kernel_backend import compile_library\n"
        "compile_library(Path(sys.argv[2]), Path(sys.argv[3]))"
    )
    by_zig = {**os.environ, "CC": ZIG, "ZIG_LOCAL_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program, str(ROOT), str(SOURCE), str(library)], env=by_zig, check=True)
    around = {**os.environ, "CAPPLAN_KERNEL": str(library), "CAPPLAN_TRUST_NETWORKS": "100"}
    tests = "tests/simulator/test_same_path.py"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "slow", "-p", "no:cacheprovider", tests]
    ended = subprocess.run(command, cwd=ROOT, env=around, capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stdout + ended.stderr
