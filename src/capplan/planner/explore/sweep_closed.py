"""Points of a sweep with closed clients, of a layout that was fitted to load tests: what `predict --clients` says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capplan.calibration.fit.fitted_file import Fitted
from capplan.models.language.scenario import Scenario, changed
from capplan.models.results import STATISTICS, Band
from capplan.planner.explore.sweep_table import SweepPoint, band_cells, layout_point
from capplan.planner.predict.predict import Question, predict_case
from capplan.systems.registry import resolve

CLIENTS = "clients"


def closed_points(
    scenario: Scenario, clients: Sequence[float], fitted: Fitted | None, seed: int
) -> Iterator[SweepPoint]:
    """Yield a point for each number of closed clients, which have a throughput and no offered rate.

    Parameters
    ----------
    scenario : Scenario
        The layout.
    clients : sequence of float
        Numbers of clients.
    fitted : Fitted or None
        The calibration.
    seed : int
        Seed of every random number.
    """
    for count in clients:
        case = resolve(changed(scenario, tps=None, clients=int(count)), fitted, seed)
        found = predict_case(case, Question(engine="analytic"))
        throughput = found.peak_tps
        if throughput is None:
            raise ValueError("closed clients have a throughput")
        busiest = found.limits[0]
        point = {
            **layout_point(case.system, case.scenario.given()),
            CLIENTS: int(count),
            **band_cells("throughput_tps", _ends(throughput)),
            "bottleneck": busiest.resource,
            **band_cells("bottleneck_utilisation", _ends(found.utilisation[busiest.resource])),
            **band_cells("drop_rate", (0.0, 0.0, 0.0)),
            "basis": throughput.basis,
            "engine": found.engine,
            "seed": found.seed,
            "version": found.version,
        }
        for name, latency in found.latency_ms.items():
            for statistic in STATISTICS:
                band = getattr(latency, statistic)
                if band is not None:
                    point |= band_cells(f"{name}_{statistic}_ms", _ends(band))
        yield point


def _ends(band: Band) -> tuple[float, float, float]:
    return band.value, band.low, band.high
