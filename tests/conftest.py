"""The same examples in every run: a property test that fails here fails everywhere. Small matrices on one thread."""

import os
import sys

from hypothesis import settings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does; workers of pytest inherit it
# Images for containers set it: workers and hundreds of commands would compile the same modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

settings.register_profile("deterministic", max_examples=50, derandomize=True, deadline=None, print_blob=True)
settings.load_profile("deterministic")
