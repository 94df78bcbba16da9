"""Python and the kernel agree on what the arrays hold, or the kernel does not run."""

import numpy as np
import pytest
from tests.simulator.small_networks import visit
from tests.simulator.test_both_engines import network

from capplan.errors import MissingError, RefusedError
from capplan.models.language.station import Station
from capplan.models.language.traffic import Poisson
from capplan.simulator.compiled import engine as state
from capplan.simulator.compiled.engine import simulate
from capplan.simulator.compiled.kernel import layout as at
from capplan.simulator.compiled.kernel.library import LIBRARY, Library, compare, describe


def test_the_kernel_is_that_of_these_files() -> None:
    compare(describe(LIBRARY))


@pytest.mark.parametrize("name", ["Thread", "Thread.pc", "ClassTotals.longest", "=LOST", "Kernel.threads"])
def test_another_layout_is_refused(name: str) -> None:
    described = describe(LIBRARY)
    offset, size = described.pop(name)
    with pytest.raises(MissingError):
        compare(described | ({name: (offset + 8, size)} if not name.startswith("Kernel") else {}))


def test_other_c_files_are_refused() -> None:
    described = describe(LIBRARY)
    source = next(name for name in described if name.startswith("source "))
    with pytest.raises(MissingError):
        compare({name: place for name, place in described.items() if name != source})


def test_elements_have_the_size_of_their_types() -> None:
    sizes = Library(LIBRARY).places

    assert sizes["threads"][1] == at.THREAD.itemsize
    assert sizes["completions"][1] == at.COMPLETION.itemsize == 16
    assert sizes["speeds"][1] == np.dtype(float).itemsize


def test_more_work_at_once_than_records_have_numbers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MOST_RECORDS", 1000)
    with pytest.raises(RefusedError):
        simulate(network(visit(1000, "a"), 1000.0, Station("a", 1, "ps"), arrivals=Poisson()), 10.0, seed=1)
