"""Words for the figures of a live validation, the same on the screen and on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from capplan.planner.live.answer import LiveFigure, Verdict

USUAL_BYTES = 100
VERDICTS: Mapping[Verdict, str] = {
    "within threshold": "yes",
    "within repeat noise": "noise",
    "off": "OFF",
    "not judged": "-",
}
MESSAGES = {"auth": "authorizations", "update": "updates and stops"}
LEGEND = (
    "Capacity in requests/s, latencies, think and RTT in ms, sessions not found in per cent. Right: yes, within the "
    "threshold (capacity 10 %, p50 15 %, p99 30 % up to 80 % of the capacity, added p50 and not found 10 %); noise, "
    "within how far another repeat may be off; OFF, neither; -, not judged."
)
_HUNDRED, _TEN = 100, 10
_MOST_PERCENT = 999


def cells(figure: LiveFigure) -> tuple[str, ...]:
    """Return load, quantity, prediction, measurement, error and verdict of a figure."""
    return (
        load(figure),
        figure.quantity,
        f"{number(figure.predicted)} ({number(figure.low)}-{number(figure.high)})",
        measured(figure),
        "" if figure.error is None else _percent(100 * figure.error),
        VERDICTS[figure.verdict],
    )


def statement(figure: LiveFigure) -> str:
    """Return what clients ask, in words, such as `reads at LOCAL_ONE`."""
    parts = [f"{MESSAGES.get(figure.operation, f'{figure.operation}s')} at {figure.level}"]
    parts += [f"rows of {figure.row_bytes:,} B"] if figure.row_bytes != USUAL_BYTES else []
    parts += ["TLS"] if figure.tls else []
    return ", ".join(parts)


def load(figure: LiveFigure) -> str:
    """Return the load of a figure, in a few words."""
    return figure.load if figure.rtt_ms is None else f"{figure.load}, RTT {figure.rtt_ms:g}"


def measured(figure: LiveFigure) -> str:
    """Return what was measured, with the noise of a repeat."""
    if figure.measured is None:
        return ""
    if figure.noise is None or not figure.measured:
        return number(figure.measured)
    share = 100 * figure.noise / abs(figure.measured)
    return f"{number(figure.measured)} ± {f'{share:.0f} %' if share <= _MOST_PERCENT else 'any'}"


def _percent(value: float) -> str:
    return f"{value:+.0f} %" if abs(value) <= _MOST_PERCENT else f"x {1 + value / 100:.0f}"


def number(value: float) -> str:
    """Return a figure with two or three digits."""
    if abs(value) >= _HUNDRED:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= _TEN else f"{value:.2g}"


def round_trips(figures: Sequence[LiveFigure]) -> list[str]:
    """Return how many round trips each level waits for, as sentences."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in figures:
        if each.round_trips is not None:
            found.setdefault((each.operation, each.level), []).append(f"{each.round_trips:.2f} at {each.rtt_ms:g} ms")
    return [
        f"Round trips that a {operation} at {level} waits for: {', '.join(said)}."
        for (operation, level), said in found.items()
    ]


def sessions(figures: Sequence[LiveFigure]) -> list[str]:
    """Return what the figures of sessions are about, as sentences; none without any."""
    if not any(each.quantity == "not found" for each in figures):
        return []
    return [
        "A session has the eight messages of openprovider, each in the next data centre: an authorization (read), the "
        "start (write), five updates and the stop (read, then write). The rate is that of sessions.",
        "Think is the mean time from an answer to the next message, and latency counts from the end of that time. Not "
        "found: sessions whose first update found no row, as it came before the row did.",
        "The costs are those of the fitted runs. There are no RADIUS servers and no pool of workers.",
    ]


def reasons(figures: Sequence[LiveFigure]) -> list[str]:
    """Return why figures are not judged and what else must be known, each with the figures that it is for."""
    found: dict[str, list[str]] = {}
    for each in figures:
        if each.reason:
            found.setdefault(each.reason, []).append(f"{each.quantity} of {statement(each)}, {load(each)}")
    return [f"{reason[0].upper()}{reason[1:]} ({_few(names)})." for reason, names in found.items()]


def _few(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} figures, such as {names[0]}"
