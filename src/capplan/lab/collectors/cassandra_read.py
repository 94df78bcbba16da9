"""Reads: latency and CPU of reading single rows of a fixed table by their key, with warm caches."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import Any

from capplan.lab.collectors.cassandra_load import ROWS, TABLE, Target, collect_load
from capplan.lab.collectors.cassandra_write import write_request
from capplan.lab.collectors.collector import Collected, Progress, Settings
from capplan.lab.collectors.measurement.load import Request
from capplan.lab.schema import KEYSPACE
from capplan.models.errors import InputError

_AT_ONCE = 64  # writes of the rows that are read afterwards


async def _read_request(target: Target, settings: Settings) -> Request:
    """Write the rows, and prepare the statement that reads one; every answer must have its row."""
    import acsylla

    write = await write_request(target, replace(settings, level="ALL"))
    for first in range(0, ROWS, _AT_ONCE):
        await asyncio.gather(*(write(number) for number in range(first, min(first + _AT_ONCE, ROWS))))
    text = f"SELECT value FROM {KEYSPACE}.{TABLE}_{settings.row_bytes} WHERE id = ?"  # noqa: S608  # our table
    prepared = await target.session.create_prepared(text)
    keys = random.Random(settings.seed + 1).sample(range(ROWS), ROWS)  # noqa: S311  # keys of rows
    level, execute = acsylla.Consistency[settings.level], target.session.execute

    async def read(number: int) -> Any:
        found = await execute(prepared.bind([keys[number % ROWS]], consistency=level))
        if found.count() != 1:
            raise InputError(f"row {keys[number % ROWS]} was not found")
        return found

    one = (await read(0)).first()
    if len(one.value) != settings.row_bytes:
        raise InputError(f"a row has {len(one.value)} bytes, and {settings.row_bytes} were written")
    return read


def collect(settings: Settings, progress: Progress) -> Collected:
    """Measure reads."""
    return collect_load("read", _read_request, settings, progress)
