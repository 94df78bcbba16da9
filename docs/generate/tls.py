"""Write docs/reference/tls.md: what TLS costs, where that comes from, and the backtest.

Run from anywhere: `uv run python docs/generate/tls.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from capplan.models.language.units import FloatArray
from capplan.systems.components.tls.prior import (
    BORINGSSL,
    JDK,
    TAIL,
    Kind,
    draws,
    floor,
    load_factor,
    pairs,
    parameters,
    table,
)

DOCS = Path(__file__).resolve().parents[1]
PAGE, TEMPLATE = DOCS / "reference" / "tls.md", DOCS / "generate" / "tls.md"
LEVELS = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class Backtest:
    """One pair, predicted from the load factors of the other systems.

    Attributes
    ----------
    kind : {"message", "handshake"}
        What the pair measures.
    system, axis : str
        The pair, as in `pairs.csv`.
    floor_s, measured_s : float
        CPU time of TLS per request: by the floor of BoringSSL, and as measured; seconds.
    predicted_s : tuple of float
        The same as predicted, seconds: 5th percentile, median and 95th percentile.
    measured_ratio : float
        Throughput with TLS over that without; nan if only that with TLS is known.
    predicted_ratio : tuple of float
        The ratio as predicted: 5th percentile, median and 95th percentile.
    fitted : bool
        Whether the pair enters the prior.
    reason : str
        Why it does not.
    """

    kind: Kind
    system: str
    axis: str
    floor_s: float
    measured_s: float
    predicted_s: tuple[float, float, float]
    measured_ratio: float
    predicted_ratio: tuple[float, float, float]
    fitted: bool
    reason: str

    @property
    def inside(self) -> bool:
        """Whether the measured time lies in the predicted band."""
        return self.predicted_s[0] <= self.measured_s <= self.predicted_s[2]


def backtest() -> list[Backtest]:
    """Return every comparable pair with its prediction, in the order of `readings.csv`."""
    return [_predicted(row) for _, row in pairs().iterrows()]


def _predicted(row: pd.Series) -> Backtest:
    factor = load_factor(row.kind, row.system)
    low, middle, high = (row.floor_s * factor.at(level) for level in (1 - TAIL, 0.5, TAIL))
    most, ratio, least = (1 / (1 + row.plain * each / row.cores) for each in (low, middle, high))
    return Backtest(
        row.kind,
        row.system,
        row.axis,
        row.floor_s,
        row.measured_s,
        (low, middle, high),
        row.encrypted / row.plain,
        (least, ratio, most),
        row.use == "fit",
        "" if pd.isna(row.reason) else row.reason,
    )


def page() -> str:
    """Return the page."""
    parts = {
        "FLOOR": _floor(),
        "PRIOR": _prior(),
        "COSTS": _costs(),
        "BACKTEST": "\n".join(map(_row, backtest())),
        "INSIDE": _inside(),
        "UNREAD": _unread(),
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    return text


def _floor() -> str:
    rows = []
    for provider in (BORINGSSL, JDK):
        own = floor(provider)
        low, high = (each * 1e3 for each in own.handshakes_s)
        rows.append(
            f"| {provider} | {own.message_s * 1e6:.2f} ± {own.message_error_s * 1e6:.2f} "
            f"| {own.byte_s * 1024e6:.3f} ± {own.byte_error_s * 1024e6:.3f} "
            f"| {own.handshake_s * 1e3:.2f} ({low:.2f} to {high:.2f}) |"
        )
    return "\n".join(rows)


def _prior() -> str:
    rows = []
    for each in parameters().values():
        low, high = (each.value * np.exp(sign * 1.645 * each.log_sd) for sign in (-1, 1))
        band = f"{float(f'{low:.3g}'):,g} to {float(f'{high:.3g}'):,g}" if each.free else "fixed"
        unit = "" if each.unit == "1" else f" {each.unit}"
        rows.append(f"| `{each.name}` | {each.value:,.4g}{unit} | {band} | {each.source} |")
    return "\n".join(rows)


def _costs() -> str:
    user, kernel = draws(512), draws(512, kernel=True)
    shown = {
        "message, one side, us": (user.message_s, kernel.message_s, 1e6),
        "KiB, one side, us": (user.byte_s, kernel.byte_s, 1024e6),
        "exchange, one side, us": (user.exchange_s, kernel.exchange_s, 1e6),
        "handshake, one side, ms": (user.handshake_s, kernel.handshake_s, 1e3),
    }
    return "\n".join(
        f"| {name} | {_band(np.asarray(tls) * unit)} | {_band(np.asarray(vpn) * unit)} |"
        for name, (tls, vpn, unit) in shown.items()
    )


def _band(values: FloatArray, digits: str = ".3g") -> str:
    low, middle, high = np.quantile(values, LEVELS)
    return f"{middle:{digits}} ({low:{digits}} to {high:{digits}})"


def _row(each: Backtest) -> str:
    low, middle, high = (f"{time * 1e6:.3g}" for time in each.predicted_s)
    least, ratio, most = (f"{part:.2f}" for part in each.predicted_ratio)
    known = not np.isnan(each.measured_ratio)
    ratios = f"{each.measured_ratio:.3f} | {ratio} ({least} to {most})" if known else "- | -"
    return (
        f"| {each.kind} | {each.system}, {each.axis} | {each.floor_s * 1e6:.3g} | {each.measured_s * 1e6:.3g} "
        f"| {middle} ({low} to {high}) | {ratios} | {'yes' if each.inside else '**no**'} "
        f"| {'yes' if each.fitted else f'no: {each.reason}'} |"
    )


def _inside() -> str:
    all_pairs = backtest()
    fitted = [each for each in all_pairs if each.fitted]
    factors = {kind: load_factor(kind) for kind in ("message", "handshake")}  # type: ignore[arg-type]  # literals
    words = "; ".join(
        f"{kind}s {each.median:.2g} ({each.at(0.05):.2g} to {each.at(0.95):.3g})" for kind, each in factors.items()
    )
    return (
        f"Of the {len(fitted)} readings that enter the prior, {sum(each.inside for each in fitted)} lie in the band "
        f"that the others give; of all {len(all_pairs)}, {sum(each.inside for each in all_pairs)}. The load factors of "
        f"all of them: {words}."
    )


def _unread() -> str:
    read = {(each.system, each.axis) for each in backtest()}
    rows = [row for _, row in table("pairs").iterrows() if (row.system, row.axis) not in read]
    return "\n".join(
        f"| {row.system}, {row.axis} | {_cell(row.plain)} | {_cell(row.encrypted)} | {_cell(row.unit)} |"
        for row in rows
    )


def _cell(value: object) -> str:
    return "" if pd.isna(value) else str(value)  # type: ignore[call-overload]  # pandas takes any scalar


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
