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


def test_every_row_is_named_and_on_the_picture() -> None:
    figure = ratio_plot(MADE, page=False)
    words = " ".join(each.text for each in figure.layout.annotations)

    assert all(name in words for name in MADE.throughput_ratios)
    assert max(band.high for band in MADE.throughput_ratios.values()) < figure.layout.xaxis.range[1]
