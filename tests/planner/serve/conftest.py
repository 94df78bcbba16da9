"""The application in the process of the test, shared by tests that only ask."""

import asyncio
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest
from fastapi.testclient import TestClient

from capplan.layout.fitted_file import Fitted
from capplan.planner.serve.app import create_app
from capplan.planner.serve.requests import answer

HERE = "http://127.0.0.1"


class Inline:
    """Answers requests in this process."""

    def __init__(self, files: Mapping[str, Fitted] = MappingProxyType({})) -> None:
        self.files = files

    async def run(self, verb: str, body: Any) -> str:
        return answer(verb, body, self.files)

    def close(self) -> None:
        pass


class Held:
    """Answers no request until the test releases them."""

    def __init__(self) -> None:
        self.taken, self.released = asyncio.Event(), asyncio.Event()

    async def run(self, _verb: str, _body: Any) -> str:
        self.taken.set()
        await self.released.wait()
        return "{}"

    def close(self) -> None:
        pass


@pytest.fixture(scope="session")
def client() -> Iterator[TestClient]:
    with TestClient(create_app(work=Inline()), base_url=HERE) as found:
        yield found


@pytest.fixture
def held() -> Held:
    return Held()
