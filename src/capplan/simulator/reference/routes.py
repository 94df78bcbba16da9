"""Routes of the SimPy engine: which target a request takes, and what the policies remember."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from capplan.models.language.step import RoutePolicy
from capplan.simulator.reference.requests import Attempt
from capplan.simulator.specification.streams import uniform

SMOOTHING_BITS = 3  # a new time counts 1/8, as in TCP's smoothed round-trip time (RFC 6298)


class Router:
    """The state of one route: requests passed, requests inside each target, smoothed time of each target in ticks.

    All of it is integer, so that every engine keeps exactly the same. A target that has never answered counts as the
    fastest. `known_down`, if any can be, tells which targets requests stay away from, unless there is no other.
    """

    def __init__(self, policy: RoutePolicy, targets: int, key: int, known_down: Callable[[int], bool] | None) -> None:
        self.policy, self.targets, self.key, self.known_down = policy, targets, key, known_down
        self.passed = 0
        self.inside = [0] * targets
        self.smoothed = [-1] * targets

    def enter(self, attempt: Attempt) -> int:
        """Pick the target of a request, the one its session has taken before if that is sticky."""
        routes, this = attempt.conversation.routes, (self.key, self.targets)
        if routes is None:
            target = self._pick(attempt)
        elif this in routes and not (self.known_down and self.known_down(routes[this])):
            target = routes[this]
        else:
            target = routes[this] = self._pick(attempt)
        self.inside[target] += 1
        return target

    def leave(self, target: int, took: int | None = None) -> None:
        """Count a request out of its target; `took` is None when it was dropped."""
        self.inside[target] -= 1
        if took is not None:
            before = self.smoothed[target]
            self.smoothed[target] = took if before < 0 else before + ((took - before) >> SMOOTHING_BITS)

    def _up(self) -> Sequence[int]:
        """Return the targets that requests may go to."""
        targets = range(self.targets)
        if self.known_down is None:
            return targets
        return [target for target in targets if not self.known_down(target)] or targets

    def _pick(self, attempt: Attempt) -> int:
        up = self._up()
        match self.policy:
            case "round_robin":
                self.passed += 1
                return _next(up, (self.passed - 1) % self.targets)
            case "random":
                return _next(up, int(uniform(attempt.key, self.key) * self.targets))
            case "token_aware":
                return _next(up, int(uniform(attempt.conversation.token, 0) * self.targets))
            case "least_loaded":
                return min(up, key=self.inside.__getitem__)
            case "latency_ranked":
                return min(up, key=self.smoothed.__getitem__)


def _next(up: Sequence[int], target: int) -> int:
    """Return `target` or the next one in order that is `up`."""
    return target if target in up else min(up, key=lambda other: (other < target, other))
