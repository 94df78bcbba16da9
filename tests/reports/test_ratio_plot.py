"""The plot of ratios has a row for each reference, with its band."""

import pytest

from capplan.planner.predict.predict import predict
from capplan.reports.prediction import ratio_plot
from capplan.systems.registry import scenario

MADE = predict(scenario("vcider"))


def test_each_reference_has_its_ratio_and_band() -> None:
    (points,) = ratio_plot(MADE).data
    bands = list(MADE.throughput_ratios.values())

    assert list(points.x) == [band.value for band in bands]
    for place, band in enumerate(bands):
        assert points.x[place] + points.error_x.array[place] == pytest.approx(band.high)
        assert points.x[place] - points.error_x.arrayminus[place] == pytest.approx(band.low)
