"""The load generator: what it counts is what happened, and an open load's latency counts from the intended start."""

import asyncio
import time
from pathlib import Path

import numpy as np
import pytest

from capplan.evidence.importers.hdr_log import HDR_LOG
from capplan.evidence.text_file import TextFile
from capplan.lab.collectors import load
from capplan.lab.collectors.collector import Timed, write_histograms
from capplan.lab.collectors.load import Part, Sample, Window, is_steady, per_request, warm_up

FOREVER = 60.0


async def answered(number: int) -> None:
    del number
    await asyncio.sleep(0)


async def failing(number: int) -> None:
    if number % 4 == 0:
        raise ConnectionError(number)


def test_closed_clients_make_each_request_once() -> None:
    asked: list[int] = []

    async def request(number: int) -> None:
        asked.append(number)
        await asyncio.sleep(0)

    found = load.run(load.closed(request, 3, FOREVER, 100, first=7))

    assert sorted(asked) == list(range(7, 107))
    assert (found.completed, found.errors, len(found.lateness_s)) == (100, 0, 0)


def test_no_more_requests_are_under_way_than_clients() -> None:
    under_way, most = 0, 0

    async def request(number: int) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(number % 5):
            await asyncio.sleep(0)
        under_way -= 1

    load.run(load.closed(request, 4, FOREVER, 200))
    assert most == 4


def test_failed_requests_are_counted_and_have_no_latency() -> None:
    closed = load.run(load.closed(failing, 2, FOREVER, 100))
    paced = load.run(load.paced(failing, np.zeros(100)))

    assert (closed.completed, closed.errors) == (75, 25)
    assert (paced.completed, paced.errors) == (75, 25)


@pytest.mark.parametrize("closed", [True, False])
def test_a_request_without_an_answer_is_an_error_and_slows_nothing_else(
    monkeypatch: pytest.MonkeyPatch, closed: bool
) -> None:
    """The time that was waited for it is no part of the run."""
    patience_s = 0.2
    monkeypatch.setattr(load, "_PATIENCE_S", patience_s)

    async def request(number: int) -> None:
        await (asyncio.Event().wait() if number == 5 else asyncio.sleep(0))

    run = load.closed(request, 20, 0.01, 20) if closed else load.paced(request, np.zeros(20))
    began = time.perf_counter()
    found = load.run(run)
    assert (found.errors, found.completed) == (1, 19)
    assert found.duration_s < time.perf_counter() - began - patience_s


def test_a_request_that_is_sent_late_has_waited() -> None:
    """All requests are due at the start, and each holds the generator: they wait for those before them."""
    held: list[float] = []

    async def request(number: int) -> None:
        del number
        held.append(sum(range(20_000)))

    found = load.run(load.paced(request, np.zeros(50)))

    assert np.all(found.latencies_s >= found.lateness_s)
    assert np.all(np.diff(found.lateness_s) > 0)
    assert found.latencies_s[-1] >= found.latencies_s[0]


def test_no_request_is_sent_before_its_time() -> None:
    starts = load.arrivals(2000.0, 0.05, 1000, seed=3)
    found = load.run(load.paced(answered, starts))

    assert found.completed == len(starts)
    assert np.all(found.lateness_s >= 0)
    assert found.duration_s >= starts[-1]


def test_arrivals_are_a_poisson_stream() -> None:
    """Counts of 400 streams: their mean and variance are both 100.

    Of a right program, the mean falls outside of 4 standard errors once in 16,000 cases; the variance, whose relative
    standard error is 7 %, falls outside of 30 % once in 50,000. The seeds are fixed.
    """
    counts = np.array([len(load.arrivals(1000.0, 0.1, 10**6, seed)) for seed in range(400)])

    assert abs(counts.mean() - 100) < 4 * (100 / 400) ** 0.5
    assert abs(counts.var() / 100 - 1) < 0.3
    assert len(load.arrivals(1000.0, 1.0, 50, 1)) == 50


def sample(thread_cpu_s: float, waited_s: float = 0.0) -> Sample:
    latencies = np.full(1000, 1e-3)
    return Sample(0.0, 1.0, latencies, np.array([]), 0, thread_cpu_s, thread_cpu_s, waited_s, (0.5,), 0.0, ())


def test_the_generator_is_measured_by_what_it_can_get() -> None:
    assert sample(0.4).client_percent == pytest.approx(40)
    assert sample(0.4, waited_s=0.5).client_percent == pytest.approx(80)  # others had the core half of the time
    assert sample(1.2, waited_s=0.5).client_percent == pytest.approx(100)


@pytest.mark.parametrize(
    ("costs", "steady"),
    [
        ([1.0, 1.0, 1.0], False),  # too few
        ([9.0, 1.0, 1.0, 1.0, 1.0], True),
        ([1.0, 1.06, 0.97, 1.0], True),
        ([1.0, 1.0, 1.2, 1.0], False),  # too scattered
        ([1.08, 1.06, 1.01, 1.0], False),  # still falling
    ],
)
def test_steady_means_that_windows_agree_and_do_not_drift(costs: list[float], steady: bool) -> None:
    assert is_steady([Window(each) for each in costs]) == steady


def test_nothing_is_steady_while_java_compiles() -> None:
    compiling = [Window(1.0, 0.3), *[Window(1.0, 0.01)] * 3]
    assert not is_steady(compiling)
    assert is_steady([*compiling, Window(1.0, 0.01)])


def test_a_warm_up_ends_when_it_is_steady_or_when_its_time_is_over() -> None:
    costs = iter([4.0, 2.0, 1.0, 1.0, 1.0, 1.0, 9.0])

    async def next_cost(seconds: float) -> Window:
        assert seconds == 0.5
        return Window(next(costs))

    async def growing(seconds: float, seen: list[float] = []) -> Window:  # noqa: B006  # its memory
        seen.append(seconds)
        return Window(float(len(seen)), compiling=0.4)

    found = asyncio.run(warm_up(next_cost, 0.5, 100.0))
    assert len(found.windows) == 6
    assert "steady after 3 s" in found.sentence

    found = asyncio.run(warm_up(growing, 0.5, 4.0))
    assert len(found.windows) == 8
    assert "not steady within 4 s" in found.sentence
    assert "compiled with 40 % of a core" in found.sentence


def test_the_log_of_histograms_is_imported_with_the_same_percentiles(tmp_path: Path) -> None:
    latencies = np.random.default_rng(5).exponential(1e-3, 5000)
    found = Sample(100.0, 2.0, latencies, np.array([]), 0, 0.1, 0.1, 0.0, (), 0.0, ())
    path = tmp_path / "runs.hlog"
    write_histograms([Timed("open-100", 100.0, 102.0, found.histogram())], path)

    (row,) = HDR_LOG.read(TextFile(path)).load_tests

    assert row.request_class == "open-100"
    assert row.duration_s == pytest.approx(2.0)
    assert row.throughput_tps == pytest.approx(2500.0)
    assert row.latency_p99_ms == pytest.approx(1000 * np.quantile(latencies, 0.99, method="inverted_cdf"), rel=2e-3)
    assert row.latency_max_ms == pytest.approx(1000 * latencies.max(), rel=2e-3)


def test_the_cost_of_a_request_leaves_out_what_servers_use_in_the_time_of_each_part() -> None:
    """A run that its number of requests ends early has parts as long as the asked time says: 2 s, not 0.4."""
    parts = (Part(2.0, 100, 0.3, 0.0, 0.0),)
    found = Sample(0.0, 2.0, np.full(100, 1e-3), np.zeros(0), 0, 0.0, 0.0, 0.0, (0.3,), 0.0, parts)
    assert per_request(found, idle=0.1).servers == pytest.approx([(0.3 - 0.2) / 100])
