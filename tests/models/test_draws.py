"""One parameter draw of a construct, and constructs as keys."""

import numpy as np
import pytest

from capplan.models.language.construct import as_key, at_draw
from capplan.models.language.distribution import Deterministic, Exponential, Mixture
from capplan.models.language.step import Delay, Sequence, Visit
from capplan.systems.openprovider import SYSTEM as OPENPROVIDER
from capplan.systems.openprovider.network import network
from capplan.systems.openprovider.scenario import OpenproviderScenario


def test_every_array_gives_its_element() -> None:
    law = Mixture((0.25, 0.75), (Exponential(np.array([1.0, 2.0])), Deterministic(3.0)))

    assert at_draw(law, 1) == Mixture((0.25, 0.75), (Exponential(2.0), Deterministic(3.0)))
    assert at_draw(np.array([5.0, 6.0]), 0) == 5.0
    assert at_draw("text", 0) == "text"


def test_what_holds_no_array_stays_the_same_object() -> None:
    flow = Sequence((Delay(Deterministic(1.0)), Visit("server", Exponential(np.array([1.0, 2.0])))))
    single = at_draw(flow, 0)

    assert single.steps[0] is flow.steps[0]
    assert single.steps[1] == Visit("server", Exponential(1.0))


def test_what_stands_at_several_places_is_made_once() -> None:
    visit = Visit("server", Exponential(np.array([1.0, 2.0])))
    single = at_draw(Sequence((visit, visit)), 1)

    assert single.steps[0] is single.steps[1]


def test_a_draw_of_a_network_is_the_network_of_the_draw() -> None:
    values = OPENPROVIDER.fitted().values(OPENPROVIDER.parameters)
    singly = {name: float(value[7]) if isinstance(value, np.ndarray) else value for name, value in values.items()}

    assert at_draw(network(OpenproviderScenario(), values, 5000.0), 7) == network(
        OpenproviderScenario(), singly, 5000.0
    )


def test_keys_are_equal_when_contents_are() -> None:
    one, same, other = (Exponential(np.array(values)) for values in ([1.0, 2.0], [1.0, 2.0], [1.0, 3.0]))

    assert as_key(one) == as_key(same)
    assert as_key(one) != as_key(other)
    assert as_key(Mixture((0.5, 0.5), (one, one))) == as_key(Mixture((0.5, 0.5), (same, same)))
    assert as_key(Exponential(1.0)) == Exponential(1.0)


def test_what_is_not_of_the_language_has_no_key() -> None:
    with pytest.raises(TypeError, match="language"):
        as_key({"a": 1})
