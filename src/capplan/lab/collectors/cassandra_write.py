"""Writes: latency and CPU of overwriting single rows of a fixed table."""

from __future__ import annotations

import random
from collections.abc import Awaitable
from typing import Any

from capplan.lab.collectors.cassandra_load import ROWS, TABLE, Target, collect_load
from capplan.lab.collectors.collector import Collected, Progress, Settings
from capplan.lab.collectors.measurement.load import Request
from capplan.lab.schema import KEYSPACE


async def write_request(target: Target, settings: Settings) -> Request:
    """Prepare the statement that writes a row; its keys come in a fixed random order."""
    import acsylla

    text = f"INSERT INTO {KEYSPACE}.{TABLE}_{settings.row_bytes} (id, value) VALUES (?, ?)"  # noqa: S608  # our table
    prepared = await target.session.create_prepared(text)
    draw = random.Random(settings.seed)  # noqa: S311  # keys of rows
    keys, value = draw.sample(range(ROWS), ROWS), draw.randbytes(settings.row_bytes)
    level, execute = acsylla.Consistency[settings.level], target.session.execute

    def write(number: int) -> Awaitable[Any]:
        found: Awaitable[Any] = execute(prepared.bind([keys[number % ROWS], value], consistency=level))
        return found

    return write


def collect(settings: Settings, progress: Progress) -> Collected:
    """Measure writes."""
    return collect_load("write", write_request, settings, progress)
