"""`capplan serve`: the JSON API, its documents and the what-if page, on this machine."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from capplan.cli.shell.messages import no_more_signs, say
from capplan.cli.shell.terminal import naming
from capplan.errors import InputError, check_extra
from capplan.layout.fitted_file import Fitted
from capplan.models.language.units import parse_duration_s, parse_size_bytes
from capplan.systems.registry import read_calibration

_LARGEST_BODY = 2.0**30
_NEEDED = ("fastapi", "fastapi_offline", "pebble", "prometheus_client", "uvicorn")


def serve_(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FITTED]...", help="Fitted files (.json) that requests may name.")
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; one that other machines reach needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any free one.")] = 8080,
    token: Annotated[
        str | None, typer.Option(metavar="TEXT", envvar="CAPPLAN_TOKEN", help="What those who ask must know.")
    ] = None,
    processes: Annotated[int, typer.Option(min=1, help="Requests that are answered at the same time.")] = 2,
    queue: Annotated[int, typer.Option(min=0, help="Requests that wait beside them; more are refused.")] = 8,
    time_limit: Annotated[str, typer.Option(metavar="TIME", help="Time of a request.")] = "30s",
    body_limit: Annotated[str, typer.Option(metavar="SIZE", help="Size of the body of a request.")] = "1MB",
) -> None:
    """Serve the JSON API (/predict, /simulate, /size, /systems), its documents (/docs) and the what-if page (/).

    A request may name one of the fitted files. Prometheus reads /metrics. Only this machine can ask by default.
    """
    check_extra("serve", *_NEEDED)
    from capplan.planner.serve.app import BACKLOG, Connection, check_token, create_app, notebook
    from capplan.planner.serve.requests import Limits

    check_token(host, token)
    served = _fitted_files(files or ())
    with naming("--time-limit"):
        time_s = parse_duration_s(time_limit)
    limits = Limits(processes, queue, time_s, _bytes(body_limit))
    import uvicorn

    app = create_app(limits, token, files=served)
    listening = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    where = "/ and /docs" if notebook() is not None else "/docs (the what-if page needs the extra notebooks)"
    say(f"http://{shown}:{listening.getsockname()[1]} serves {where}; Ctrl-C ends it")
    no_more_signs()
    sys.stderr.flush()
    config = uvicorn.Config(
        app, http=Connection, log_level="warning", server_header=False, timeout_graceful_shutdown=3, backlog=BACKLOG
    )
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run([listening])


def _fitted_files(paths: Sequence[Path]) -> dict[str, Fitted]:
    """Read fitted files, by their names without folders."""
    found: dict[str, Fitted] = {}
    for path in paths:
        if path.name in found:
            raise InputError(f"{path} has the name of another fitted file: requests name files, so rename one of them")
        found[path.name] = read_calibration(path)
    return found


def _listen(host: str, port: int) -> socket.socket:
    """Open the listening socket, so that clients who connect before the server has started wait for it."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise InputError(
            f"host {host} and port {port} cannot be used: {error.strerror or error}; choose another --port or --host"
        ) from None


def _bytes(text: str) -> int:
    with naming("--body-limit"):
        size = parse_size_bytes(text)
    if not 0 <= size < _LARGEST_BODY:
        raise InputError(f"--body-limit {text} is not possible: give less than 1 GiB")
    return int(size)
