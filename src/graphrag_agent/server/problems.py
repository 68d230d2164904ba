"""What an HTTP client is told when something can't be done: a status, a code, a message and a remedy.

No traceback, path, address or key leaves the server: what isn't meant for a client is logged under an id that the
client gets.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from graphrag_agent.errors import (
    CheckpointerError,
    KnowledgeBaseError,
    MissingExtraError,
    ModelUnavailableError,
    QuestionTooLongError,
    SettingsError,
    ThreadBusyError,
    ThreadError,
)

logger = logging.getLogger(__name__)

MAX_MESSAGE_CHARACTERS = 600
_PRIVATE = re.compile(
    r"\w[\w+.-]*://[^\s'\"]+"  # addresses, passwords in them
    r"|(?<![\w.])(?:[A-Za-z]:)?[/\\][\w.~-]+(?:[/\\][^\s'\"]*)+"  # paths
    r"|\b(?:sk|pk|key|Bearer)[-_ ][\w-]{8,}"
)


class Problem(Exception):  # noqa: N818  # RFC 9457's word for it; it is no fault of the program's
    """An answer that tells why there is no other."""

    def __init__(
        self, status: int, code: str, message: str, remedy: str = "", *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.remedy = remedy
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """As JSON."""
        return {"error": {"code": self.code, "message": self.message, "remedy": self.remedy}}


def unknown_thread(thread: str) -> Problem:
    """The one answer for a thread that isn't there and for one that is another's."""
    return Problem(404, "unknown_thread", f"there is no thread {thread[:80]!r}", "list yours with GET /api/threads")


def problem_of(error: Exception) -> Problem:
    """What a client is told of the error."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, RequestValidationError):
        return Problem(400, "bad_request", without_secrets(_problems_of(error)), "see /api/openapi.json")
    if isinstance(error, HTTPException):
        return Problem(error.status_code, "bad_request", str(error.detail), headers=error.headers)
    message = without_secrets(str(error))
    if isinstance(error, ThreadBusyError):
        remedy = "wait for its end, or stop it"
        return Problem(409, "thread_busy", "a turn is running on the thread", remedy, headers={"Retry-After": "2"})
    if isinstance(error, ThreadError):
        return Problem(404, "not_found", message)
    if isinstance(error, QuestionTooLongError):
        return Problem(413, "question_too_long", message)
    if isinstance(error, SettingsError) and not isinstance(error, MissingExtraError):
        return Problem(400, "bad_request", message)
    return _fault(error)


def _fault(error: Exception) -> Problem:
    reference = uuid.uuid4().hex[:12]
    logger.error("a request failed (%s)", reference, exc_info=error)
    told = f"tell the operator the reference {reference}"
    if isinstance(error, ModelUnavailableError):
        return Problem(503, "model_unavailable", "the model can't be reached", f"try later, or {told}")
    if isinstance(error, KnowledgeBaseError):
        return Problem(503, "knowledge_base_unavailable", "the knowledge base can't be used", f"try later, or {told}")
    if isinstance(error, CheckpointerError):
        return Problem(503, "threads_unavailable", "the threads can't be read or written", f"try later, or {told}")
    return Problem(500, "internal", "the server could not answer", told)


def without_secrets(text: str) -> str:
    """The text without addresses, paths and keys, and not longer than a client needs."""
    return _PRIVATE.sub("…", " ".join(text.split()))[:MAX_MESSAGE_CHARACTERS]


def _problems_of(error: RequestValidationError) -> str:
    """Which field is wrong and why, without the value."""
    told = []
    for item in error.errors()[:5]:
        place = ".".join(str(part) for part in item["loc"] if part != "body")
        told.append(f"{place[:80] or 'the body'}: {item['msg']}")
    return "; ".join(told)
