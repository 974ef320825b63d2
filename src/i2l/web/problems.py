"""Everything that can go wrong with a request, as problem+json (RFC 9457): what happened and what to do."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.responses import JSONResponse

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
        """Give it as JSON values."""
        return {
            "type": f"/docs#{self.kind}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }

    def response(self) -> JSONResponse:
        """Give it as an answer."""
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
    """Give a problem that its status explains, such as 404."""
    title = HTTPStatus(status).phrase
    return {"type": "about:blank", "title": title, "status": status, "detail": detail or title}
