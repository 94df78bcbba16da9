"""Options of `capplan lab` before anything starts."""

import pytest

from capplan.cli.lab import read_heap
from capplan.errors import InputError


@pytest.mark.parametrize(("text", "mib"), [("512M", 512), ("512m", 512), ("1g", 1024), ("1.5GiB", 1536), ("1MiB", 1)])
def test_a_heap_is_written_as_for_java_or_with_a_unit(text: str, mib: int) -> None:
    assert read_heap(text) == mib * 2**20


@pytest.mark.parametrize("text", ["1e999", "-inf", "-1", "nanMiB", "9" * 5000, f"{'9' * 5000}M", "2048GiB", "M", ""])
def test_an_impossible_heap_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--heap"):
        read_heap(text)
