"""Routes of the SimPy engine: which target a request takes, and what the policies remember."""

from __future__ import annotations

from capplan.models.step import RoutePolicy
from capplan.simulator.reference_requests import Request
from capplan.simulator.streams import uniform

SMOOTHING_BITS = 3  # a new time counts 1/8, as in TCP's smoothed round-trip time (RFC 6298)


class Router:
    """The state of one route: requests passed, requests inside each target, smoothed time of each target in ticks.

    All of it is integer, so that every engine keeps exactly the same. A target that has never answered counts as the
    fastest.
    """

    def __init__(self, policy: RoutePolicy, targets: int, key: int) -> None:
        self.policy, self.targets, self.key = policy, targets, key
        self.passed = 0
        self.inside = [0] * targets
        self.smoothed = [-1] * targets

    def enter(self, request: Request) -> int:
        """Pick the target of a request, the one its session has taken before if that is sticky."""
        routes, this = request.conversation.routes, (self.key, self.targets)
        if routes is None:
            target = self._pick(request)
        elif this in routes:
            target = routes[this]
        else:
            target = routes[this] = self._pick(request)
        self.inside[target] += 1
        return target

    def leave(self, target: int, took: int | None = None) -> None:
        """Count a request out of its target; `took` is None when it was dropped."""
        self.inside[target] -= 1
        if took is not None:
            before = self.smoothed[target]
            self.smoothed[target] = took if before < 0 else before + ((took - before) >> SMOOTHING_BITS)

    def _pick(self, request: Request) -> int:
        match self.policy:
            case "round_robin":
                self.passed += 1
                return (self.passed - 1) % self.targets
            case "random":
                return int(uniform(request.key, self.key) * self.targets)
            case "token_aware":
                return int(uniform(request.conversation.token, 0) * self.targets)
            case "least_loaded":
                return self.inside.index(min(self.inside))
            case "latency_ranked":
                return self.smoothed.index(min(self.smoothed))
