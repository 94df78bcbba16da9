"""Who may ask: everyone on this machine, or those who know the token; and how much."""

import asyncio
import re
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient
from starlette.datastructures import URL
from starlette.requests import HTTPConnection
from starlette.websockets import WebSocketDisconnect

from capplan.cli.main import BAD_INPUT, main
from capplan.errors import InputError
from capplan.planner.serve.app import create_app
from capplan.planner.serve.requests import Limits, Processes, RefusedRequestError

HERE = "http://127.0.0.1"
TOKEN = "a-token-of-this-test"
SIZE: dict[str, Any] = {
    "type": "http", "method": "POST", "path": "/size", "raw_path": b"/size", "query_string": b"", "root_path": "",
    "scheme": "http", "http_version": "1.1", "headers": [(b"host", b"127.0.0.1")], "server": ("127.0.0.1", 80),
    "client": ("127.0.0.1", 50_000),
}  # fmt: skip
PATHS = ("/systems", "/docs", "/openapi.json", "/metrics", "/")


@pytest.fixture
def guarded(held: Any) -> TestClient:
    return TestClient(create_app(token=TOKEN, work=held), base_url="http://planner.example")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("header", [None, "Bearer wrong", f"Basic {TOKEN}", TOKEN, "Bearer tök"])
def test_nothing_is_told_without_the_token(guarded: TestClient, path: str, header: str | None) -> None:
    headers = {} if header is None else {b"Authorization": header.encode()}
    answer = guarded.get(path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("path", PATHS)
def test_the_token_opens_every_path(guarded: TestClient, path: str) -> None:
    assert guarded.get(path, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_a_host_header_opens_no_path(guarded: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not the path, even where a URL made of both ends in one that is open, as in older versions of starlette."""
    made = property(lambda asked: URL(f"http://{asked.headers['host']}{asked.scope['path']}"))
    monkeypatch.setattr(HTTPConnection, "url", made)
    for host in ("a/healthz?", "planner.example/healthz?", "a/login#"):
        assert guarded.get("/systems", headers={"Host": host}).status_code == 401


def test_a_browser_asks_for_the_token_and_keeps_a_cookie(guarded: TestClient) -> None:
    page = guarded.get("/", headers={"Accept": "text/html"})
    assert page.status_code == 401
    assert 'name="token"' in page.text
    assert guarded.post("/login", data={"token": "wrong"}).status_code == 401
    entered = guarded.post("/login", data={"token": TOKEN}, follow_redirects=False)
    assert entered.headers["Location"] == "/"
    assert TOKEN not in entered.headers["Set-Cookie"]
    assert re.search("HttpOnly.*SameSite=strict", entered.headers["Set-Cookie"])
    assert guarded.get("/systems").status_code == 200


def test_a_socket_needs_the_token_too(guarded: TestClient) -> None:
    with pytest.raises(WebSocketDisconnect), guarded.websocket_connect("/ws?session_id=s"):
        pass


def test_whether_it_runs_is_told_to_everyone(guarded: TestClient) -> None:
    assert guarded.get("/healthz").text == "ok\n"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "planner.example"},
        {"Host": ""},
        {"Host": "[abc"},
        {"Origin": "http://planner.example"},
        {"Origin": "null"},
        {"Origin": "http://[x"},
    ],
)
def test_pages_of_other_sites_may_not_ask(client: TestClient, headers: dict[str, str]) -> None:
    assert client.get("/systems", headers=headers).status_code == 403


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8080", "[::1]:8080"])
def test_pages_of_this_server_may_ask(client: TestClient, host: str) -> None:
    assert client.get("/systems", headers={"Host": host, "Origin": f"http://{host}"}).status_code == 200


@pytest.mark.parametrize("options", [
    "--host 0.0.0.0", "--host planner.example", "--token short", "--time-limit 0s", "--time-limit inf",
    "--time-limit nan",
])  # fmt: skip
def test_an_open_server_does_not_start(options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CAPPLAN_TOKEN", raising=False)
    assert main(["serve", *options.split()]) == BAD_INPUT


def test_a_long_body_is_refused_however_it_comes(client: TestClient) -> None:
    whole = client.post("/predict", content=b" " * 1_000_001)
    parts = client.post("/predict", content=(b" " * 1000 for _ in range(1001)))
    assert whole.status_code == parts.status_code == 413
    assert list(whole.json()) == list(parts.json()) == ["error"]


def test_a_refusal_shows_what_cannot_be_written(client: TestClient) -> None:
    body = '{"scenario": {"system": "fedora4"}, "lose": ["\\ud800"]}'
    answer = client.post("/predict", content=body)
    assert answer.status_code == 422
    assert "\\ud800" in answer.json()["error"]


def test_a_full_queue_says_when_to_try_again(held: Any) -> None:
    async def asked() -> tuple[httpx2.Response, httpx2.Response]:
        app = create_app(Limits(processes=1, queue=0, time_s=7), work=held)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=HERE) as client,
        ):
            first = asyncio.create_task(client.post("/predict", json={}))
            await held.taken.wait()
            second = await client.post("/predict", json={})
            held.released.set()
            return await first, second

    first, second = asyncio.run(asked())
    assert first.status_code == 200
    assert second.status_code == 429
    assert second.headers["Retry-After"] == "7"


def test_work_ends_when_the_client_hangs_up(held: Any) -> None:
    """The next request finds room; before, it was refused for as long as the work went on without a client."""
    parts = [{"type": "http.request", "body": b"{}"}]

    async def received() -> Any:
        if parts:
            return parts.pop()
        await held.taken.wait()
        return {"type": "http.disconnect"}

    async def sent(_message: Any) -> None:
        pass

    async def run() -> int:
        app = create_app(Limits(processes=1, queue=0), work=held)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=HERE) as client,
        ):
            await asyncio.wait_for(app(SIZE, received, sent), 30)
            held.released.set()
            return (await client.post("/predict", json={})).status_code

    assert asyncio.run(run()) == 200


@pytest.mark.slow
def test_work_ends_with_its_time_and_the_next_request_is_answered() -> None:
    async def run() -> None:
        work = Processes(Limits(processes=1, time_s=2))
        try:
            hours = {"scenario": {"system": "fedora4", "tps": 100}, "duration": "10h", "engine": "simpy"}
            with pytest.raises(RefusedRequestError) as refused:
                await work.run("simulate", hours)
            assert refused.value.status == 504
            with pytest.raises(InputError, match="fedora5"):
                await work.run("predict", {"scenario": {"system": "fedora5"}})
        finally:
            work.close()

    asyncio.run(run())


def test_a_request_is_refused_when_the_server_ends_before_its_answer(held: Any) -> None:
    async def run() -> httpx2.Response:
        app = create_app(work=held)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=HERE) as client,
        ):
            asked = asyncio.create_task(client.post("/predict", json={}))
            await held.taken.wait()
            asked.cancel("graceful shutdown is over")
            return await asked

    answer = asyncio.run(run())
    assert answer.status_code == 503
    assert "the server ends" in answer.json()["error"]


def test_requests_without_a_client_cost_at_most_the_process_that_works_on_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool begins whatever it takes, so it takes nothing for which no process is free."""
    taken: list[Future[str]] = []

    def schedule(*_: Any, **__: Any) -> Future[str]:
        taken.append(Future())
        return taken[-1]

    async def run() -> None:
        work = Processes(Limits(processes=1))
        monkeypatch.setattr(work, "_pool", SimpleNamespace(schedule=schedule))
        gone = [asyncio.create_task(work.run("size", {})) for _ in range(50)]
        last = asyncio.create_task(work.run("predict", {}))
        await asyncio.sleep(0)
        for each in gone:
            each.cancel()
        await asyncio.wait(gone[1:])
        assert len(taken) == 1
        assert not last.done()
        taken[0].set_running_or_notify_cancel()  # its process has ended
        await asyncio.wait(gone)
        while len(taken) < 2:
            await asyncio.sleep(0)
        taken[1].set_result("{}")
        assert await last == "{}"

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_body_that_breaks_off_is_no_failure(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    async def received() -> Any:
        return {"type": "http.disconnect"}

    async def sent(_message: Any) -> None:
        pass

    asyncio.run(client.app(SIZE, received, sent))  # type: ignore[arg-type]  # any ASGI application
    assert not caplog.records


def test_metrics_count_requests_by_path_and_status(guarded: TestClient) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    for path in ("/systems", "/systems", "/predict"):
        guarded.get(path, headers=headers)
    text = guarded.get("/metrics", headers=headers).text
    assert 'capplan_http_requests_total{method="GET",path="/systems",status="200"} 2.0' in text
    assert 'capplan_http_requests_total{method="GET",path="/predict",status="405"} 1.0' in text
    assert 'capplan_http_request_seconds_count{path="/systems"} 2.0' in text
    assert "capplan_http_requests_in_flight 1.0" in text
