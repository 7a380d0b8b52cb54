"""The pages of the console, by path."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import click
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import muniment
from muniment import Classification, HostClient, MunimentError
from muniment.cli.failures import Failure
from muniment.cli.hints import hint_for, message
from muniment_console.agents import agent_page, agents_page, conversations_page
from muniment_console.audit import Filter, audit_page, moment
from muniment_console.guards import Guards
from muniment_console.received import Received, chains_of, state_of
from muniment_console.releases import release_page, releases_page
from muniment_console.rendering import document
from muniment_console.status import Watch, status_page
from muniment_http import listening
from muniment_http.listening import Listener


class Console:
    """The pages, and what they are read from."""

    def __init__(self, host: HostClient, address: str, export: Path | None, metrics: Path | None) -> None:
        """*address* is that of the server that *host* calls, *metrics* a socket. None: it is not shown."""
        self._host = host
        self._address = address
        self._received = Received(export) if export else None
        self._watch = Watch(metrics) if metrics else None

    def serve(self, listener: Listener, hosts: Collection[str], password: str, on_ready: Callable[[], None]) -> None:
        """Serve as `listening.serve` does, to readers who call it by one of *hosts*. Raises Failure."""
        if self._received:
            self._received.read()
        if self._watch:
            self._watch.start()
        application = self.application()
        listening.serve(listener, lambda: Guards(application, hosts=hosts, password=password), on_ready=on_ready)

    def application(self) -> Starlette:
        """The application. Its pages are read in threads: the client of a host blocks."""
        pages: Mapping[str, Callable[[Request], Response]] = {
            "/": self._agents,
            "/agent": self._agent,
            "/conversations": self._conversations,
            "/releases": self._releases,
            "/release": self._release,
            "/audit": self._audit,
            "/seals": self._seals,
            "/status": self._status,
        }
        kinds = (MunimentError, Failure, click.BadParameter, HTTPException, Exception)
        made = Starlette(
            routes=[Route(path, page) for path, page in pages.items()],
            exception_handlers=dict.fromkeys(kinds, _problem),
        )
        made.router.redirect_slashes = False
        return made

    def _agents(self, request: Request) -> Response:
        level, found = agents_page(self._host, request.query_params.get("after", ""))
        return document("agents.html", level, {"tab": "/", **found})

    def _agent(self, request: Request) -> Response:
        level, found = agent_page(self._host, request.query_params.get("id", ""))
        return document("agent.html", level, {"tab": "/", **found})

    def _conversations(self, request: Request) -> Response:
        given = {name: request.query_params.get(name, "").strip() for name in ("agent", "after", "since")}
        since = moment(given["since"] or "7d")
        level, found = conversations_page(self._host, given["agent"], given["after"], since)
        return document("conversations.html", level, {"tab": "/conversations", "given": given, **found})

    def _releases(self, request: Request) -> Response:
        level, found = releases_page(self._host, request.query_params)
        return document("releases.html", level, {"tab": "/releases", **found})

    def _release(self, request: Request) -> Response:
        level, found = release_page(self._host, request.query_params.get("id", ""))
        return document("release.html", level, {"tab": "/releases", **found})

    def _audit(self, request: Request) -> Response:
        level, found = audit_page(self._host, Filter.of(request.query_params), self._received)
        return document("audit.html", level, {"tab": "/audit", "given": request.query_params, **found})

    def _seals(self, _: Request) -> Response:
        chains = chains_of(self._host, self._received)
        state = state_of(chains) if self._received else "unknown"
        return document("seals.html", Classification.RESTRICTED, {"tab": "/seals", "chains": chains, "state": state})

    def _status(self, _: Request) -> Response:
        level, found = status_page(self._host, self._address, self._watch)
        return document("status.html", level, {"tab": "/status", **found})


def _problem(_: Request, error: Exception) -> Response:
    """A page that says what is wrong, and what to do."""
    status, text, hint = _explained(error)
    return document("problem.html", Classification.PUBLIC, {"text": text, "hint": hint}, status=status)


def _explained(error: Exception) -> tuple[int, str, str]:
    match error:
        case muniment.PrincipalNotAllowed():
            return 403, message(error), "start the console with a key that was created without --only to see this page"
        case muniment.PermissionDenied():
            return 403, message(error), hint_for(error)
        case muniment.NotFound():
            return 404, message(error), hint_for(error)
        case muniment.InvalidArgument():
            return 400, message(error), "correct what was entered"
        case MunimentError():
            return 502, message(error), hint_for(error)
        case click.BadParameter():
            return 400, f"A field {error.message}", ""
        case Failure():
            return 500, error.message, error.hint
        case HTTPException():
            return error.status_code, "There is no such page", ""
    return 500, f"The console has a bug: {type(error).__name__}", "report what the address of this page is"
