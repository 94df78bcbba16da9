"""The same examples in every run: a property test that fails here fails everywhere. Small matrices on one thread.

And what tests import from outside the package.
"""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does; workers of pytest inherit it
# Images for containers set it: workers and hundreds of commands would compile the same modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

settings.register_profile("deterministic", max_examples=50, derandomize=True, deadline=None, print_blob=True)
settings.load_profile("deterministic")
ROOT = Path(__file__).parents[1]


@pytest.fixture
def generators(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let scripts of the documentation be imported, and import one another, as they do where they are run."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs" / "generate"), *sys.path])


@pytest.fixture
def workers_find_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker process imports tasks by name; it searches where its parent does."""
    monkeypatch.syspath_prepend(ROOT)
