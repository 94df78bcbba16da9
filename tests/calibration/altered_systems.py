"""Systems with altered observations, for tests."""

from copy import copy
from typing import Any

from capplan.layout.system import System


def observing(system: System[Any], **changes: Any) -> System[Any]:
    """Return a system like this one with some attributes and methods of its observations replaced."""
    its, observations = copy(system), copy(system.observations)
    for name, value in changes.items():
        setattr(observations, name, value)
    vars(its)["observations"] = observations
    return its
