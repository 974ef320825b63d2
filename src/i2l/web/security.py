"""Who may ask, what a browser may do with the answers, and how a refusal is said.

Everything that can go wrong with a request is a problem+json (RFC 9457): what happened, and what to do.
"""

import hmac
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from i2l.errors import I2LError

TITLES: Final = {
    "not-an-image": (415, "Not an image that can be read"),
    "too-large": (413, "Too large"),
    "not-a-formula": (422, "No formula found"),
    "invalid-request": (422, "The request is not as described"),
    "malformed": (400, "The request cannot be understood"),
    "long-head": (431, "The head of the request is too long"),
    "upload-timeout": (408, "The upload took too long"),
    "unauthorized": (401, "A token is needed"),
    "foreign-origin": (403, "Another site may not ask"),
    "unknown-host": (421, "This server does not go by that name"),
    "busy": (503, "Busy"),
    "timeout": (504, "Reading took too long"),
    "reader-failed": (500, "The reader failed"),
}


class ProblemError(Exception):
    """A request that cannot be answered as asked."""

    def __init__(self, kind: str, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        """Say what happened.

        Args:
            kind: one of TITLES.
            detail: what happened to this request, and what to do.
            headers: of the response.
        """
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.headers = dict(headers or {})
        self.status, self.title = TITLES[kind]

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as JSON values."""
        return {
            "type": f"/docs#{self.kind}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }

    def response(self) -> JSONResponse:
        """Return the problem as an HTTP answer."""
        return problem_response(self.to_dict(), self.headers)


def problem_response(content: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Answer with a problem."""
    return JSONResponse(
        dict(content),
        status_code=content["status"],
        headers=dict(headers or {}),
        media_type="application/problem+json",
    )


def plain_problem(status: int, detail: str | None = None) -> dict[str, Any]:
    """Make a problem that its status explains, such as 404."""
    title = HTTPStatus(status).phrase
    return {"type": "about:blank", "title": title, "status": status, "detail": detail or title}


_HOST: Final = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[\w.-]+))(?::\d{1,5})?", re.ASCII)
_TOKEN: Final = re.compile(r"[!-~]+")  # what is visible in ASCII: anything else is changed or cut on its way
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
HEADERS: Final = {
    "Content-Security-Policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "font-src 'self'",
            "img-src 'self' blob: data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class SecurityMiddleware:
    """Sets the headers, and turns away names and sites that were not allowed.

    A page on the web can make a browser ask a server on the same computer: by a form, or by a name that it
    lets point to 127.0.0.1. So the name must be known, and what costs something must be asked from here.
    """

    def __init__(self, app: ASGIApp, *, hosts: Sequence[str], origins: Sequence[str]) -> None:
        """Wrap an application.

        Args:
            app: to protect.
            hosts: names that the server goes by; any if empty.
            origins: other sites that may ask.
        """
        self._app = app
        self._hosts = {host.lower() for host in hosts}
        self._origins = set(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                ours = scope["path"].startswith("/api/")
                headers.setdefault("Cache-Control", "no-store" if ours else "no-cache")
            await send(message)

        refusal = self._refusal(scope["method"], Headers(scope=scope))
        answer = refusal.response() if refusal else self._app
        await answer(scope, receive, send_with_headers)

    def _refusal(self, method: str, headers: Headers) -> ProblemError | None:
        given = headers.getlist("host")
        if len(given) > 1:  # who stands between client and server may have looked at the other one
            return ProblemError("malformed", "There are two Host headers; send one.")
        host = given[0] if given else ""
        found = _HOST.fullmatch(host)
        name = (found["address"] or found["name"]).lower() if found else ""
        if self._hosts and name not in self._hosts:
            return ProblemError(
                "unknown-host", f"Use one of {', '.join(sorted(self._hosts))}, or --allow-host."
            )
        origin = headers.get("origin")
        if method == "POST" and origin is not None and origin not in self._origins:
            scheme, _, its_host = origin.partition("://")
            if scheme not in ("http", "https") or its_host.lower() != host.lower():
                return ProblemError("foreign-origin", f"{origin[:200]} is not allowed; see --allow-origin.")
        return None


def require_usable_token(token: str) -> None:
    """Refuse a token that protects nothing, or that no client could send.

    Raises:
        I2LError: if it is empty, or holds blanks or letters beyond ASCII.
    """
    if not token:
        raise I2LError(
            "The token is empty. Give one, such as from `openssl rand -hex 16`; to serve without, leave "
            "--token away and unset I2L_TOKEN."
        )
    if not _TOKEN.fullmatch(token):
        raise I2LError(
            "A token is made of ASCII letters, digits and signs, without blanks; choose another, such as "
            "from `openssl rand -hex 16`."
        )


def check_token(authorization: str | None, token: str | None) -> None:
    """Compare the token of a request, in a time that says nothing about it.

    Raises:
        ProblemError: if it is not the right one.
    """
    if token is None:
        return
    scheme, _, given = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(given.encode(), token.encode()):
        raise ProblemError(
            "unauthorized",
            "Send the header `Authorization: Bearer TOKEN`, with the token that the server was started with.",
            headers={"WWW-Authenticate": "Bearer"},
        )
