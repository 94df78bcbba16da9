"""gRPC: a single call against a message of a stream that stays open, with an echo of Python's asyncio at both ends.

The echo runs as a process of its own, which is this module: `python -m capplan.lab.collectors.grpc PORT`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from capplan.errors import check_extra
from capplan.evidence.microbenchmarks import MicrobenchRow
from capplan.lab.collectors import load, servers
from capplan.lab.collectors.collector import Collected, Forecast, Progress, Settings
from capplan.lab.collectors.load import Request, Sample, Servers, doubts, figure, mean_row, quantiles, quantum_row
from capplan.lab.collectors.servers import LOOPBACK, MEASURED, PREDICTED, costs_of
from capplan.lab.processes import Process, connects, cores, cpu_error_s

SERVICE, UNARY, STREAM = "capplan.Echo", "Unary", "Stream"
_MESSAGE = b"x" * 100
_ROUNDS = 3  # of unary and streaming in turn
_WARM_UP_S = 1.0
_REMARKS = (
    "client and server are Python's asyncio: the difference between a call and a message is gRPC's, "
    "the time of either is mostly Python's",
)


def collect(settings: Settings, progress: Progress, forecast: Forecast) -> Collected:
    """Measure single calls and streams in turn.

    Raises
    ------
    MissingError
        If gRPC is not installed.
    """
    check_extra("lab", "grpc")
    with servers.own_folder("grpc") as folder:
        port = servers.free_port()
        command = [sys.executable, "-m", __name__, str(port)]
        with servers.running("gRPC", command, folder / "log", lambda: connects(LOOPBACK, port)) as process:
            rows = load.run(_collect(settings, progress, forecast, process, port))
    return Collected(microbenchmarks=(*rows, quantum_row("grpc")), remarks=_REMARKS)


async def _collect(
    settings: Settings, progress: Progress, forecast: Forecast, process: Process, port: int
) -> list[MicrobenchRow]:
    import grpc

    rows: list[MicrobenchRow] = []
    async with grpc.aio.insecure_channel(f"{LOOPBACK}:{port}") as channel:
        call = channel.unary_unary(f"/{SERVICE}/{UNARY}")

        async def unary(_: int) -> None:
            await call(_MESSAGE)

        smaller: list[tuple[int, dict[str, list[Sample]]]] = []
        for clients in settings.clients:
            predicted = _predicted(smaller, clients, forecast) if clients == settings.clients[-1] else {}
            streams: asyncio.Queue[Any] = asyncio.Queue()
            for _ in range(clients):
                streams.put_nowait(channel.stream_stream(f"/{SERVICE}/{STREAM}")())

            async def message(_: int, streams: asyncio.Queue[Any] = streams) -> None:
                stream = await streams.get()
                await stream.write(_MESSAGE)
                await stream.read()
                streams.put_nowait(stream)

            kinds: dict[str, Request] = {"call": unary, "message of a stream": message}
            samples: dict[str, list[Sample]] = {name: [] for name in kinds}
            for round_ in range(_ROUNDS + 1):
                progress(f"{clients} clients, calls and messages in turn", round_, _ROUNDS + 1)
                for name, request in kinds.items():
                    seconds = settings.duration_s / _ROUNDS if round_ else _WARM_UP_S
                    found = await load.closed(request, clients, seconds, settings.requests, Servers((process,)))
                    samples[name] += [found] if round_ else []
            while not streams.empty():
                await streams.get_nowait().done_writing()
            smaller.append((clients, samples))
            for name, each in samples.items():
                rows += _rows(name, clients, each, predicted.get(name))
    return rows


def _predicted(
    smaller: Sequence[tuple[int, Mapping[str, Sequence[Sample]]]], clients: int, forecast: Forecast
) -> dict[str, float]:
    """Return the predicted throughput at a number of clients, by kind, from the costs measured with fewer clients."""
    if not smaller:
        return {}
    (fewest, first), (_, last) = smaller[0], smaller[-1]
    found = {}
    for name, samples in last.items():
        many = samples[-1]
        costs = costs_of(first[name][-1], fewest, many, many.server_cpu_s[0] / max(many.completed, 1))
        found[name] = forecast.throughput_per_s(costs, cores(), clients)
    return found


def _rows(operation: str, clients: int, samples: list[Sample], predicted: float | None) -> Iterator[MicrobenchRow]:
    """Yield latency and CPU at each end, with the scatter of the rounds, and throughput beside its prediction."""
    latencies = [float(each) for sample in samples for each in sample.latencies_s]
    notes = "; ".join(dict.fromkeys(doubt for each in samples for doubt in doubts(each)))
    said = f"{operation}, {clients} client{'' if clients == 1 else 's'}"
    cells = {"conditions": f"echo of {len(_MESSAGE)} B, closed, one connection, no TLS", "note": notes or None}
    shared = figure("grpc", "grpc", said, version=version("grpcio"), unit="s", samples=len(latencies), **cells)
    clock_s = cpu_error_s() * len(samples) / len(latencies)
    costs = {
        ("server", "cpu_time"): ([each.server_cpu_s[0] / each.completed for each in samples], clock_s),
        ("client", "cpu_time"): ([each.client_cpu_s / each.completed for each in samples], 0.0),
        ("link", "latency"): ([float(each.latencies_s.mean()) for each in samples], 0.0),
    }
    for (component, quantity), (values, error_s) in costs.items():
        yield mean_row(replace(shared, component=component, quantity=quantity), values, error_s)
    for statistic, value in quantiles(latencies):
        if statistic in ("p50", "p99"):
            word: Any = statistic
            yield replace(shared, component="link", quantity="latency", statistic=word, value=value)
    if predicted is not None:
        throughput = replace(shared, quantity="throughput", statistic="mean", unit="1/s")
        note = "made before the run, from the costs with fewer closed clients"
        yield replace(throughput, component=PREDICTED, value=predicted, note=note)
        yield mean_row(throughput, [each.throughput_per_s for each in samples], component=MEASURED, unit="1/s")


async def _unary(request: bytes, _: Any) -> bytes:
    return request


async def _stream(requests: AsyncIterator[bytes], _: Any) -> AsyncIterator[bytes]:
    async for each in requests:
        yield each


async def _serve(port: int) -> None:
    import grpc

    server = grpc.aio.server()
    methods = {
        UNARY: grpc.unary_unary_rpc_method_handler(_unary),
        STREAM: grpc.stream_stream_rpc_method_handler(_stream),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
    server.add_insecure_port(f"{LOOPBACK}:{port}")
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
