"""The application behind `capplan serve`: routes, their documents, and the what-if notebook.

What stands before every request: who may ask, from which page, how long a body may be and how slowly it may come; and
counts of requests.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import json
import logging
import sysconfig
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import lru_cache
from http import HTTPStatus
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

import h11
from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import PlainTextResponse, RedirectResponse, Response
from fastapi_offline import FastAPIOffline
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import HTMLResponse, JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from capplan.answers.json_text import NotJsonError, parse_json
from capplan.errors import InputError
from capplan.models.language.document import network_schema, schema
from capplan.planner.demand.demand import Demand
from capplan.planner.predict.prediction import Prediction
from capplan.planner.serve.requests import (
    FittedFiles,
    Limits,
    PredictRequest,
    Processes,
    Queue,
    RefusedRequestError,
    SimulateRequest,
    SizeRequest,
    Work,
)
from capplan.planner.simulate.simulation import Simulation
from capplan.planner.size.machines import Shapes
from capplan.planner.size.sizing import Sizing
from capplan.systems.registry import every_system
from capplan.visible_text import visible

COOKIE = "capplan"
SHORTEST_TOKEN = 16
OPEN = ("/healthz", "/login")
PATIENCE_S = 20.0  # in which a request must arrive, and some of its answer be read
MOST_CONNECTIONS = 200  # a process may often open no more than 256 files
BACKLOG = MOST_CONNECTIONS // 2  # are accepted at a time: too few to push out a new one before it is read
MOST_VALUES = 100_000  # of a body: a network of a thousand stations has a third of it
_LOGIN = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>capplan</title><style>body{font:16px system-ui;max-width:24rem;margin:4rem auto;padding:0 1rem}</style>
<h1>capplan</h1><form method="post" action="/login"><label>Token <input type="password" name="token" autofocus></label>
<button>Enter</button></form></html>"""


def is_loopback(host: str) -> bool:
    """Whether an address is local to this machine and unreachable from others."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def check_token(host: str, token: str | None) -> None:
    """Check that a server has a token if other machines can reach it.

    Raises
    ------
    InputError
        When there is none, or it is too short.
    """
    if token is None and not is_loopback(host):
        raise InputError(f"other machines reach host {host}: give a --token, or set CAPPLAN_TOKEN")
    if token is not None and not (len(token) >= SHORTEST_TOKEN and token.isascii() and token.isprintable()):
        raise InputError(
            f"the token is shorter than {SHORTEST_TOKEN} characters, or not printable ASCII: take a random one, such "
            "as that of `openssl rand -hex 16`"
        )


class Metrics:
    """Counts of requests for Prometheus."""

    def __init__(self, paths: Collection[str]) -> None:
        self.registry = CollectorRegistry()
        self._paths = frozenset(paths)
        self._requests = Counter(
            "capplan_http_requests", "Requests.", ["method", "path", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "capplan_http_request_seconds",
            "Time to answer.",
            ["path"],
            registry=self.registry,
            buckets=(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100),
        )
        self._in_flight = Gauge("capplan_http_requests_in_flight", "Requests in flight.", registry=self.registry)

    def began(self) -> float:
        """Count an arriving request; return the time."""
        self._in_flight.inc()
        return perf_counter()

    def ended(self, scope: Scope, status: int, began: float) -> None:
        """Count a finished request; unknown paths and methods share one series, to keep the series few."""
        path = scope["path"] if scope["path"] in self._paths else "other"
        method = scope["method"] if scope["method"] in ("GET", "POST") else "other"
        self._in_flight.dec()
        self._requests.labels(method, path, str(status)).inc()
        self._seconds.labels(path).observe(perf_counter() - began)


class Guard:
    """Refuses requests before the application sees them.

    Without a token, only pages of this server may ask: a page of another site in the browser of the same machine has
    another `Origin`, or another `Host` if its name was made to resolve to this machine.
    """

    def __init__(self, app: ASGIApp, token: str | None, body_bytes: int, metrics: Metrics) -> None:
        self._app, self._token, self._body_bytes, self._metrics = app, token, body_bytes, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "websocket":
            if self._refused(HTTPConnection(scope)) is None:
                await self._app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = self._metrics.began(), 500

        async def sent(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            refused = self._refused(HTTPConnection(scope))
            await (refused or self._app)(scope, self._limited(scope, receive), sent)
        finally:
            self._metrics.ended(scope, status, began)

    def _refused(self, asked: HTTPConnection) -> Response | None:
        if self._token is not None:
            return None if asked.scope["path"] in OPEN or _has(self._token, asked) else _unknown(asked)
        host = _netloc(f"//{asked.headers.get('host', '')}")
        if not is_loopback(host.hostname or ""):
            return refusal(403, f"host {host.hostname!r} is not this machine: use 127.0.0.1 or localhost")
        origin = asked.headers.get("origin")
        if origin is not None and _netloc(origin).netloc != host.netloc:
            return refusal(403, "a page of another site asks, and only pages of this server may")
        return None

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """Return the body of a request; refuse it once it is too long."""
        length, most, seen = Headers(scope=scope).get("content-length", ""), self._body_bytes, 0
        sentence = f"the body is longer than {most:,} B, the limit of this server"

        async def received() -> Message:
            nonlocal seen
            if length.isdigit() and int(length) > most:
                raise HTTPException(413, sentence)
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > most:
                raise HTTPException(413, sentence)
            return message

        return received


class Page:
    """The notebook. What it refuses gets the form of every other error, and its status before the response has begun.

    It begins responses before it looks for what they stream.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, began = 500, []

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                began.append(message)
            elif status < 400:
                while began:
                    await send(began.pop())
                await send(message)

        try:
            await self._app(scope, receive, sent)
        except RuntimeError as error:
            refused = getattr(error.__cause__, "status_code", None)
            if refused is None or not began:
                raise
            raise HTTPException(refused) from None
        if status >= 400:
            raise HTTPException(status)


def _netloc(text: str) -> SplitResult:
    """Return the parts of an address; of none that can be read, empty ones."""
    try:
        return urlsplit(text)
    except ValueError:
        return urlsplit("")


class Connection(H11Protocol):
    """A connection that ends when its peer takes too long: to send a request with its body, or to read an answer.

    Where there are too many connections, the one whose peer has taken longest makes room for a new one; where no peer
    takes time, the oldest does. So what others send or do not read never keeps a new connection out.
    """

    _late: asyncio.TimerHandle | None = None
    _since = 0.0  # when it was made

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._since = self.loop.time()
        transport.set_write_buffer_limits(0)  # writing pauses as soon as the peer does not read
        self._watch()
        others = [each for each in self.connections if each is not self and _is_open(each.transport)]
        if len(others) >= MOST_CONNECTIONS:
            min(others, key=_rank).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._rest()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request; end the connection after an answer for which its peer did not wait."""
        super().data_received(data)
        if self.conn.their_state is h11.DONE and self.conn.trailing_data[0]:
            self.cycle.keep_alive = False  # thousands of requests fit into what is received at once
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """Wait until the peer reads."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """Go on when the peer has read what was written."""
        super().resume_writing()
        self._rest()
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        response = refusal(400, msg)
        headers = [*response.raw_headers, CLOSE_HEADER]
        answer = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
        for event in (answer, h11.Data(data=bytes(response.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _watch(self) -> None:
        """Limit the time while the peer is waited for, and only then."""
        cycle: RequestResponseCycle | None = self.cycle
        arriving = cycle is None or cycle.response_complete or cycle.more_body
        if not (arriving or self.flow.write_paused) or self.transport.get_protocol() is not self:  # now a web socket's
            self._rest()
        elif self._late is None:
            unread = self.transport.get_write_buffer_size()
            self._late = self.loop.call_later(PATIENCE_S, self._end, unread)

    def _end(self, unread: int) -> None:
        self._rest()
        if self.transport.get_write_buffer_size() < unread:  # bytes; a slow peer reads a long answer
            self._watch()
        else:
            self.transport.abort()

    def _rest(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def _is_open(transport: asyncio.Transport) -> bool:
    """Whether a connection still takes room: one that closes does until its peer has read everything."""
    return not transport.is_closing() or transport.get_write_buffer_size() > 0


def _rank(connection: asyncio.Protocol) -> tuple[bool, float]:
    """Order connections by how little is lost with them: by how long their peers are waited for, then by age."""
    if not isinstance(connection, Connection):
        return True, 0.0  # a web socket: its page connects again
    late = connection._late
    return late is None, connection._since if late is None else late.when()


def refusal(status: int, sentence: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return a response with a sentence on why there is no answer."""
    return JSONResponse({"error": visible(sentence)}, status, headers)


async def login(request: Request, token: str | None) -> Response:
    """Give a browser with the right token a cookie, and redirect it to the first page."""
    given = parse_qs((await request.body()).decode("utf-8", "replace")).get("token", [""])[0]
    if token is None or not _equal(given, token):
        return HTMLResponse(_LOGIN, 401)
    response = RedirectResponse("/", 303)
    secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, _cookie(token), httponly=True, samesite="strict", secure=secure)
    return response


def _unknown(asked: HTTPConnection) -> Response:
    """Ask a browser for the token; refuse a program."""
    if asked.scope.get("method") == "GET" and "text/html" in asked.headers.get("accept", ""):
        return HTMLResponse(_LOGIN, 401)
    sentence = "the token is missing or wrong: send it as header `Authorization: Bearer TOKEN`"
    return refusal(401, sentence, {"WWW-Authenticate": "Bearer"})


def _has(token: str, asked: HTTPConnection) -> bool:
    scheme, _, given = asked.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return _equal(given.strip(), token)
    return _equal(asked.cookies.get(COOKIE, ""), _cookie(token))


def _cookie(token: str) -> str:
    """Return the cookie value for a token: a digest, not the token itself."""
    return hmac.new(token.encode(), b"cookie of capplan serve", hashlib.sha256).hexdigest()


def _equal(given: Any, right: str) -> bool:
    """Compare in constant time, independent of the position of the first difference."""
    return hmac.compare_digest(str(given).encode("utf-8", "replace"), right.encode())


ERRORS = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    403: "The host or the page that asks is not this server's.",
    413: "The body is too long.",
    422: "The request breaks a rule.",
    429: "Too many requests wait; `Retry-After` says when to try again.",
    503: "The process that worked on the answer ended.",
    504: "The answer takes too long.",
}
EXAMPLES: dict[str, dict[str, Any]] = {
    "PredictRequest": {
        "scenario": {"system": "fedora4", "nodes": 3, "tps": 40, "slo": ["read.p99<1s"]},
        "engine": "analytic",
    },
    "SimulateRequest": {"scenario": {"system": "fedora4", "nodes": 3, "tps": 40}, "duration": "10s"},
    "SizeRequest": {
        "scenario": {"system": "fedora4", "tps": 50},
        "sized": {"nodes": [1, 16]},
        "survive": ["node"],
        "engine": "analytic",
    },
}
_SENTENCE = {
    "type": "object",
    "properties": {"error": {"type": "string", "description": "What is wrong and what to do, in one sentence."}},
    "required": ["error"],
    "additionalProperties": False,
}
_SYSTEMS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "summary": {"type": "string", "description": "What is modelled."},
            "figures": {"type": "integer", "description": "Documented figures that it rests on."},
            "scenario": {"type": "object", "description": "JSON schema of its scenarios."},
            "fitted": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Fitted files of it that requests may name.",
            },
        },
        "required": ["name", "summary", "figures", "scenario", "fitted"],
        "additionalProperties": False,
    },
}


def operation(answer: str, body: str | None = None) -> dict[str, Any]:
    """Return FastAPI's description of an operation with named schemas for its answer and, if any, its body."""
    responses = {200: _content("The answer.", answer)}
    errors = ERRORS if body is not None else {status: ERRORS[status] for status in (401, 403)}
    responses |= {status: _content(words, "Error") for status, words in errors.items()}
    if body is None:
        return {"responses": responses, "tags": ["answers"]}
    described: dict[str, Any] = {"required": True, **_content("The question.", body)}
    described["content"]["application/json"]["example"] = EXAMPLES[body]
    return {"responses": responses, "tags": ["answers"], "openapi_extra": {"requestBody": described}}


def components() -> dict[str, Any]:
    """Return the schemas that operations refer to."""
    found: dict[str, Any] = {"Error": _SENTENCE, "Systems": _SYSTEMS}
    for name, each in {
        "Prediction": Prediction.json_schema(),
        "Simulation": Simulation.json_schema(),
        "Sizing": Sizing.json_schema(),
        "Network": network_schema(),
        "Shapes": schema(Shapes),
        "Demand": schema(Demand),
        **{each.scenario.__name__: schema(each.scenario) for each in every_system()},
    }.items():
        found |= _spread(name, each)
    scenarios = [each.scenario.__name__ for each in every_system()]
    for name in scenarios:  # a request names its system, though a file of the default system need not
        found[name].setdefault("required", []).append("system")
    found["Scenario"] = {"anyOf": [_reference(name) for name in scenarios]}
    for kind in (PredictRequest, SimulateRequest, SizeRequest):
        described = schema(kind)
        for name in ("scenario", "network", "shapes", "demand"):
            if name in described["properties"]:
                described["properties"][name] = _reference(name.capitalize())
        if "network" in described["properties"]:
            described["oneOf"] = [{"required": ["scenario"]}, {"required": ["network"]}]
        found |= _spread(kind.__name__, described)
    return found


def _spread(name: str, described: dict[str, Any]) -> dict[str, Any]:
    """Return a schema and its definitions under unique names, because two schemas may each define a `Band`."""
    moved = json.loads(json.dumps(described).replace('"#/$defs/', f'"#/components/schemas/{name}.'))
    parts = moved.pop("$defs", {})
    moved.pop("$schema", None)
    return {name: moved, **{f"{name}.{part}": each for part, each in parts.items()}}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _content(words: str, name: str) -> dict[str, Any]:
    return {"description": words, "content": {"application/json": {"schema": _reference(name)}}}


NOTEBOOK = "what_if_layout.py"
_ABOUT = (
    "Predict, simulate and size Cassandra-backed services. Bodies hold a scenario or a network; answers are the "
    "documents that the command line prints with `--json`."
)
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
_log = logging.getLogger("capplan.serve")


def create_app(
    limits: Limits | None = None,
    token: str | None = None,
    work: Work | None = None,
    files: FittedFiles = MappingProxyType({}),
) -> FastAPI:
    """Return the application.

    Parameters
    ----------
    limits : Limits, optional
        What it takes on.
    token : str, optional
        What those who ask must know; by default everyone on this machine may ask.
    work : Work, optional
        Where requests are answered; processes of its own by default, which start and end with it.
    files : mapping of Fitted
        The fitted files that requests may name.
    """
    limits = limits or Limits()

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        chosen = work or Processes(limits, files)
        app.state.queue = Queue(chosen, limits)
        try:
            yield
        finally:
            chosen.close()

    app: FastAPI = FastAPIOffline(
        title="capplan",
        version=version("capplan"),
        description=_ABOUT,
        redoc_url=None,
        lifespan=running,
        swagger_ui_parameters={"validatorUrl": None, "defaultModelsExpandDepth": -1},
    )
    app.openapi = lru_cache(maxsize=1)(lambda: _document(app, token))  # type: ignore[method-assign]  # as FastAPI says
    _add_answers(app, files)
    _refuse_other_methods(app)
    metrics = Metrics(("/predict", "/simulate", "/size", "/systems", "/docs", "/openapi.json", "/healthz", "/metrics"))
    _add_service(app, metrics, token)
    _add_what_if(app)
    _add_errors(app)
    app.add_middleware(Guard, token=token, body_bytes=limits.body_bytes, metrics=metrics)
    return app


def _add_answers(app: FastAPI, files: FittedFiles) -> None:
    @app.head("/systems", include_in_schema=False)
    @app.get("/systems", summary="The known systems and their scenarios", **operation("Systems"))
    def systems() -> Response:
        found = [
            {
                "name": each.name,
                "summary": each.summary,
                "figures": len(each.evidence),
                "scenario": schema(each.scenario),
                "fitted": [name for name, fitted in files.items() if fitted.system == each.name],
            }
            for each in every_system()
        ]
        return Response(json.dumps(found, ensure_ascii=False), media_type="application/json")

    def add(verb: str, summary: str, answer: str) -> None:
        @app.post(f"/{verb}", name=verb, summary=summary, **operation(answer, f"{verb.capitalize()}Request"))
        async def answered(request: Request) -> Response:
            return await _answered(app, verb, request)

    add("predict", "Capacity, latency, utilisation and outages of a layout or a network", "Prediction")
    add("simulate", "Simulate a layout or a network request by request", "Simulation")
    add("size", "The cheapest layout that meets its objectives", "Sizing")


def _refuse_other_methods(app: FastAPI) -> None:
    """Refuse methods that a path does not have; they would otherwise reach the notebook, which lacks the path."""
    for path, allowed in {"/systems": "GET", "/predict": "POST", "/simulate": "POST", "/size": "POST"}.items():

        async def refused(_: Request, allowed: str = allowed) -> Response:
            raise HTTPException(405, f"this path takes {allowed} only; see /docs", {"Allow": allowed})

        others = [each for each in _METHODS if each != allowed]
        app.add_route(path, refused, methods=others, include_in_schema=False)


async def _answered(app: FastAPI, verb: str, request: Request) -> Response:
    """Return the answer; the work ends when the client hangs up, so that nobody waits for it."""
    queue: Queue = app.state.queue
    work = asyncio.ensure_future(queue.run(verb, parsed(await request.body())))
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            work.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody else reads it
            raise ClientDisconnect
        return Response(work.result(), media_type="application/json")
    except asyncio.CancelledError:
        raise RefusedRequestError(503, "the server ends: ask again when it is back") from None
    finally:
        work.cancel()
        gone.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def parsed(body: bytes) -> Any:
    """Return the JSON values of a body.

    Raises
    ------
    RefusedRequestError
        When it is not JSON, or too deep or too large to be read.
    InputError
        When an object has a key twice.
    """
    try:
        return parse_json(body, "the body", MOST_VALUES)
    except NotJsonError as error:
        raise RefusedRequestError(400, str(error)) from None


def _add_service(app: FastAPI, metrics: Metrics, token: str | None) -> None:
    @app.head("/healthz", include_in_schema=False)
    @app.get("/healthz", include_in_schema=False)
    async def health() -> Response:  # without a thread: those of the pool may be busy
        return PlainTextResponse("ok\n")

    @app.head("/metrics", include_in_schema=False)
    @app.get("/metrics", include_in_schema=False)
    def measured() -> Response:
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    @app.head("/login", include_in_schema=False)
    @app.get("/login", include_in_schema=False)
    async def form() -> Response:
        return HTMLResponse(_LOGIN)

    @app.post("/login", include_in_schema=False)
    async def enter(request: Request) -> Response:
        return await login(request, token)


def notebook() -> Path | None:
    """Return the what-if notebook of this installation or checkout; None if it or marimo is missing."""
    places = (Path(__file__).parents[4] / "notebooks", Path(sysconfig.get_path("data"), "share/capplan/notebooks"))
    found = [place / NOTEBOOK for place in places if (place / NOTEBOOK).is_file()]
    return found[0] if found and find_spec("marimo") is not None else None


def _add_what_if(app: FastAPI) -> None:
    """Mount the notebook at `/`; without it, redirect to the API documents."""
    path = notebook()
    if path is not None:
        import marimo  # from a separate extra

        app.mount("/", Page(marimo.create_asgi_app(quiet=True).with_app(path="", root=str(path)).build()))
        return

    @app.get("/", include_in_schema=False)
    def first_page() -> Response:
        return RedirectResponse("/docs")


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(InputError)
    async def bad_input(_: Request, error: InputError) -> Response:
        return refusal(422, str(error))

    @app.exception_handler(RefusedRequestError)
    async def refused(_: Request, error: RefusedRequestError) -> Response:
        headers = None if error.retry_s is None else {"Retry-After": str(error.retry_s)}
        return refusal(error.status, error.sentence, headers)

    @app.exception_handler(ClientDisconnect)
    async def hung_up(_: Request, __: ClientDisconnect) -> Response:
        return refusal(503, "the client has hung up")

    @app.exception_handler(HTTPException)
    async def not_served(request: Request, error: HTTPException) -> Response:
        sentence = error.detail
        if sentence == HTTPStatus(error.status_code).phrase:  # Starlette's and the notebook's
            sentence = f"{request.method} {request.scope['path']!r}: {sentence.lower()}; see /docs"
        return refusal(error.status_code, sentence, dict(error.headers or {}))

    @app.exception_handler(Exception)
    async def failed(_: Request, error: Exception) -> Response:
        _log.error("a request failed", exc_info=error)
        return refusal(500, "capplan failed on this request, and its log says why: please report it")


def _document(app: FastAPI, token: str | None) -> dict[str, Any]:
    found = get_openapi(title=app.title, version=app.version, description=_ABOUT, routes=app.routes)
    found["components"] = {"schemas": components()}
    if token is not None:
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"token": []}]
    return found
