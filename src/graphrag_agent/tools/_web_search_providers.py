"""Search providers: Tavily, Serper, a SearXNG server, and recorded results.

The query leaves the machine, and nothing else does: no user, no cookies, no kept connection.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphrag_agent.errors import SettingsError, ToolFailedError
from graphrag_agent.retrieval.tls import tls_context
from graphrag_agent.tools._web_results import WebResult

SEARCH_SECONDS = 10.0
MAX_ANSWER_BYTES = 2_000_000
"""Twenty results take about 50 KB."""
_OUT_OF_QUOTA = frozenset({402, 432, 433})
"""Tavily answers 432 and 433 where the plan is used up."""


class TavilySearch:
    """api.tavily.com, with a key."""

    def __init__(
        self, api_key: str, *, base_url: str = "https://api.tavily.com", seconds: float = SEARCH_SECONDS
    ) -> None:
        self._api = _JsonApi("Tavily", "check TAVILY_API_KEY", seconds)
        self._url, self._headers = f"{base_url}/search", {"authorization": f"Bearer {api_key}"}

    async def search(self, query: str, count: int) -> Sequence[WebResult]:
        body = {"query": query, "max_results": count, "search_depth": "basic"}
        told = await self._api.ask("POST", self._url, headers=self._headers, json=body)
        return _results(told.get("results"), url="url", snippet="content")


class SerperSearch:
    """Google's results through google.serper.dev, with a key."""

    def __init__(
        self, api_key: str, *, base_url: str = "https://google.serper.dev", seconds: float = SEARCH_SECONDS
    ) -> None:
        self._api = _JsonApi("Serper", "check SERPER_API_KEY", seconds)
        self._url, self._headers = f"{base_url}/search", {"x-api-key": api_key}

    async def search(self, query: str, count: int) -> Sequence[WebResult]:
        told = await self._api.ask("POST", self._url, headers=self._headers, json={"q": query, "num": count})
        return _results(told.get("organic"), url="link", snippet="snippet")


class SearxngSearch:
    """A SearXNG server, which must have `json` among its `search.formats`."""

    def __init__(self, base_url: str, *, seconds: float = SEARCH_SECONDS) -> None:
        self._api = _JsonApi("SearXNG", "add json to search.formats in its settings.yml", seconds)
        self._url = f"{base_url.rstrip('/')}/search"

    async def search(self, query: str, count: int) -> Sequence[WebResult]:
        told = await self._api.ask("GET", self._url, params={"q": query, "format": "json"})
        return _results(told.get("results"), url="url", snippet="content")


class RecordedSearch:
    """Results from a JSON file, `{"query": [{"title", "url", "snippet"}]}`, for tests and demos.

    Case and spaces of a query don't count; the results of "*" answer every other query. Raises SettingsError.
    """

    def __init__(self, file: Path) -> None:
        try:
            recorded = json.loads(file.read_text(encoding="utf-8"))
            found = {query: _results(results, url="url", snippet="snippet") for query, results in recorded.items()}
        except (OSError, ValueError, AttributeError, ToolFailedError) as error:
            raise SettingsError(
                f"recorded searches {str(file)!r} can't be read ({error}); "
                'the file must hold {"query": [{"title": ..., "url": ..., "snippet": ...}]}'
            ) from error
        self._found = {_normal(query): results for query, results in found.items()}

    async def search(self, query: str, count: int) -> Sequence[WebResult]:
        return self._found.get(_normal(query), self._found.get("*", []))


class _JsonApi:
    """One request for JSON; what goes wrong is told without what was sent or answered."""

    def __init__(self, name: str, refused_remedy: str, seconds: float) -> None:
        self._name = name
        self._refused_remedy = refused_remedy
        self._seconds = seconds

    async def ask(self, method: str, url: str, **request: Any) -> Mapping[str, Any]:
        import httpx

        tls = await asyncio.to_thread(tls_context)
        try:
            async with (
                asyncio.timeout(self._seconds),
                httpx.AsyncClient(verify=tls, timeout=None) as client,  # noqa: S113  # the line above
                client.stream(method, url, **request) as response,
            ):
                self._check(response.status_code, response.headers)
                return self._read(await self._body(response))
        except TimeoutError:
            raise ToolFailedError(
                f"{self._name} gave no answer within {self._seconds:g} seconds; answer without it", retryable=True
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ToolFailedError(
                f"{self._name} can't be reached ({type(error).__name__}); answer without it", retryable=True
            ) from error

    async def _body(self, response: Any) -> bytes:
        body = b""
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > MAX_ANSWER_BYTES:
                raise ToolFailedError(f"{self._name} answered with too much; ask for fewer results")
        return body

    def _read(self, body: bytes) -> Mapping[str, Any]:
        try:
            told = json.loads(body)
        except (ValueError, RecursionError):
            told = None
        if not isinstance(told, dict):
            raise ToolFailedError(f"{self._name} answered with no JSON object; answer without it")
        return told

    def _check(self, status: int, headers: Mapping[str, str]) -> None:
        if 200 <= status < 300:
            return
        if status in (401, 403):
            raise ToolFailedError(f"{self._name} refused the search (status {status}): {self._refused_remedy}")
        if status in _OUT_OF_QUOTA:
            raise ToolFailedError(f"{self._name}'s searches are used up (status {status}); answer without them")
        if status == 429:
            wait = headers.get("retry-after", "")
            after = f"in {wait} seconds" if wait.isdecimal() and len(wait) < 6 else "later"
            raise ToolFailedError(f"{self._name} takes no more searches now; search again {after}", retryable=True)
        raise ToolFailedError(
            f"{self._name} answered with status {status}; use other words or answer without it", retryable=status >= 500
        )


def _results(rows: Any, *, url: str, snippet: str) -> list[WebResult]:
    """The rows that are results; a missing list means that nothing was found."""
    if rows is None:
        return []
    if not isinstance(rows, list):
        raise ToolFailedError("the search answered with no list of results; answer without it")
    return [
        WebResult(str(row.get("title") or ""), row[url], str(row.get(snippet) or ""))
        for row in rows
        if isinstance(row, dict) and isinstance(row.get(url), str)
    ]


def _normal(query: str) -> str:
    return " ".join(query.casefold().split())
