"""Sessions that are not found in another data centre, for people: a sentence and a small table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from capplan.cli.layout import section, table
from capplan.models.results import LEAST_PROBABILITY, Band, SessionNotFound

SPOKEN_GAP_MS = 5.0  # "a few milliseconds", says the document
_LESS = f"{LEAST_PROBABILITY * 100:g}"  # per cent that nothing smaller is told of


def render_sessions(rows: Sequence[SessionNotFound], console: Console) -> None:
    """Print the probabilities, levels by gap; nothing where there are none."""
    if not rows:
        return
    console.print(section("A session just started, looked for in another DC"))
    console.print(Padding(_sentence(rows), (0, 0, 0, 2)))
    gaps = tuple(dict.fromkeys(row.gap_ms for row in rows))
    titles = [f"{'' if number else 'gap '}{gap:.3g} ms" for number, gap in enumerate(gaps)]
    listed = table(("  % not found, reads/writes", "left"), *((title, "right") for title in titles))
    listed.padding = 0  # five bands beside the longest levels just fit into 80 columns
    for name, bands in _by_levels(rows):
        listed.add_row(f"  {name}", *(_percent_of(each) for each in bands))
        if name == _name(rows[0]) and any(each.high > LEAST_PROBABILITY for each in bands):
            listed.add_row(Text("    90 % band", style="dim"), *(Text(_range(each), style="dim") for each in bands))
    console.print(listed)


def percent(probability: float) -> str:
    """Return a probability in percent without the sign: `3.1`, `0.14`, `100`, `0`."""
    if probability >= 0.995:
        return "100"
    return f"{100 * probability:.2g}" if probability >= 1e-3 or not probability else f"{probability:.2%}".rstrip("%")


def _sentence(rows: Sequence[SessionNotFound]) -> str:
    own = [row for row in rows if _name(row) == _name(rows[0])]
    at_once, spoken = own[0], min(own, key=lambda row: abs(row.gap_ms - SPOKEN_GAP_MS))
    later = f"; {spoken.gap_ms:g} ms after, {_band(spoken.probability)}" if spoken is not at_once else ""
    return (
        f"Of messages that arrive {at_once.gap_ms:g} ms after the start was answered {_band(at_once.probability)} find "
        f"no session{later}. The RTT is {spoken.rtt_ms:.3g} ms."
    )


def _percent_of(band: Band) -> str:
    """Return the value of a band in percent; `<0.01` where it is less than what is told, `0` where it is never."""
    return f"<{_LESS}" if band.high and not band.value else percent(band.value)


def _band(band: Band) -> str:
    if band.high <= LEAST_PROBABILITY:
        return f"fewer than {_LESS} %" if band.high else "0 %"
    return f"{_percent_of(band)} % ({percent(band.low)} to {percent(band.high)})"


def _range(band: Band) -> str:
    return f"{percent(band.low)}-{percent(band.high)}" if band.high > LEAST_PROBABILITY else ""


def _by_levels(rows: Sequence[SessionNotFound]) -> Iterator[tuple[str, list[Band]]]:
    for name in dict.fromkeys(map(_name, rows)):
        yield name, [row.probability for row in rows if _name(row) == name]


def _name(row: SessionNotFound) -> str:
    return f"{row.consistency_read}/{row.consistency_write}"
