"""A few faults of each kind that needs a process of its own; `just faults` puts some 300 in the way of all verbs."""

from pathlib import Path
from random import Random

import pytest
from tests.faults.harness import FAULTS, Reference, reference
from tests.faults.verbs import VERBS

pytestmark = pytest.mark.slow
VERB = VERBS["evidence import (CSV)"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return reference(VERB, tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize("kind", FAULTS)
def test_a_verb_survives(kind: str, whole: Reference, tmp_path: Path) -> None:
    fault, _ = FAULTS[kind]
    found = fault(VERB, whole, tmp_path, Random(kind))

    assert found.survived, found
