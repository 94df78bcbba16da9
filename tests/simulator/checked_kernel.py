"""Compiles a kernel that checks itself: indices, addresses (ASan), undefined behaviour (UBSan), threads (TSan)."""

import os
import subprocess
from pathlib import Path

from capplan.simulator.compiled.kernel.library import digest

SOURCE = Path(__file__).parents[2] / "src/capplan/simulator/compiled/kernel/kernel.c"
SAME_NUMBERS = (
    "-ffp-contract=off",
    "-fno-fast-math",
    "-fno-math-errno",
)  # signed sums must not overflow, so no -fwrapv
MEMORY = ("-DCHECK_BOUNDS", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
THREADS = ("-DCHECK_BOUNDS", "-fsanitize=thread", "-fno-omit-frame-pointer")


def compile_checked(folder: Path, checks: tuple[str, ...] = MEMORY) -> dict[str, str]:
    """Compile it into a folder; return the environment in which Python can load it."""
    compiler, runtime_name = "gcc", "libtsan.so" if checks is THREADS else "libasan.so"
    library = folder / "checked_kernel.so"
    flags = ("-std=gnu11", "-O1", "-g", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror")
    source = (f"-DSOURCE_DIGEST={digest()}", str(SOURCE), "-o", str(library))
    subprocess.run([compiler, *flags, *SAME_NUMBERS, *checks, *source], check=True)
    runtime = [compiler, f"-print-file-name={runtime_name}"]
    return {
        **os.environ,
        "CAPPLAN_KERNEL": str(library),
        "LD_PRELOAD": subprocess.run(runtime, check=True, capture_output=True, text=True).stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python keeps its memory to the end
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": "exitcode=66 halt_on_error=1",
    }
