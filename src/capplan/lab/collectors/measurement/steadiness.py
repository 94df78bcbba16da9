"""Warm-up: the same load, window by window, until a request costs the servers the same CPU."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

WINDOWS = 4
"""Windows that must agree."""
_RANGE = 0.10  # of their mean, between the slowest and the fastest
_TREND = 0.05  # of their mean, between the halves


@dataclass(frozen=True)
class WarmUp:
    """The windows of a warm-up.

    Attributes
    ----------
    costs_s : tuple of float
        CPU time of the servers for one request, in each window.
    window_s : float
        Length of a window in seconds.
    steady : bool
        Whether the last windows agree.
    """

    costs_s: tuple[float, ...]
    window_s: float
    steady: bool

    @property
    def sentence(self) -> str:
        """What happened, in words."""
        last = ", ".join(f"{1e6 * each:.0f}" for each in self.costs_s[-WINDOWS:])
        time_s, shown = len(self.costs_s) * self.window_s, f"the last windows: {last} us of CPU a request"
        if self.steady:
            return f"warm-up: steady after {time_s:g} s ({shown})"
        return f"warm-up: not steady within {time_s:g} s ({shown}), so a repeat may differ"


def is_steady(costs: Sequence[float]) -> bool:
    """Whether the last windows agree and do not rise or fall."""
    last = costs[-WINDOWS:]
    if len(last) < WINDOWS:
        return False
    mean, half = sum(last) / WINDOWS, WINDOWS // 2
    trend = (sum(last[half:]) - sum(last[:half])) / half
    return max(last) - min(last) <= _RANGE * mean and abs(trend) <= _TREND * mean


async def warm_up(window: Callable[[float], Awaitable[float]], window_s: float, most_s: float) -> WarmUp:
    """Load until the cost of a request is steady.

    Parameters
    ----------
    window : function
        Loads for a time in seconds; returns the CPU time of the servers for one request.
    window_s : float
        That time.
    most_s : float
        After which to stop in any case.
    """
    costs: list[float] = []
    while not is_steady(costs) and len(costs) * window_s < most_s:
        costs.append(await window(window_s))
    return WarmUp(tuple(costs), window_s, is_steady(costs))
