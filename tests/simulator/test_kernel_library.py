"""Python and the kernel agree on what the arrays hold, or the kernel does not run."""

import numpy as np
import pytest

from capplan.models.errors import MissingError
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
