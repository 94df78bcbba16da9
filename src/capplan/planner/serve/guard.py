"""What stands before every request: who may ask, from which page, how long a body may be; and counts of requests."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Collection
from time import perf_counter
from typing import Any
from urllib.parse import parse_qs, urlsplit

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from capplan.models.errors import InputError

COOKIE = "capplan"
SHORTEST_TOKEN = 16
OPEN = ("/healthz", "/login")
_LOGIN = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>capplan</title><style>body{font:16px system-ui;max-width:24rem;margin:4rem auto;padding:0 1rem}</style>
<h1>capplan</h1><form method="post" action="/login"><label>Token <input type="password" name="token" autofocus></label>
<button>Enter</button></form></html>"""


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own, which no other machine reaches."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def check_token(host: str, token: str | None) -> None:
    """Check that a server that other machines reach has a token.

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
        """Count a request in; return the time."""
        self._in_flight.inc()
        return perf_counter()

    def ended(self, scope: Scope, status: int, began: float) -> None:
        """Count a request out. Unknown paths and methods count together, so that there are few series."""
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
            return None if asked.url.path in OPEN or _has(self._token, asked) else _unknown(asked)
        host = urlsplit(f"//{asked.headers.get('host', '')}")
        if not is_loopback(host.hostname or ""):
            return refusal(403, f"host {host.hostname!r} is not this machine: use 127.0.0.1 or localhost")
        origin = asked.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host.netloc:
            return refusal(403, "a page of another site asks, and only pages of this server may")
        return None

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """Return the body of a request, refused where it becomes too long."""
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


def refusal(status: int, sentence: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return a sentence that says why there is no answer."""
    return JSONResponse({"error": sentence}, status, headers)


async def login(request: Request, token: str | None) -> Response:
    """Give a browser that knows the token a cookie, and send it to the first page."""
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
    """Return what the cookie of a token holds: not the token itself."""
    return hmac.new(token.encode(), b"cookie of capplan serve", hashlib.sha256).hexdigest()


def _equal(given: Any, right: str) -> bool:
    """Compare in a time that does not depend on where the first difference is."""
    return hmac.compare_digest(str(given).encode("utf-8", "replace"), right.encode())
