"""What a search gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphrag_agent.documents import Hit


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits for one query, best first."""

    query: str
    hits: tuple[Hit, ...]
    note: str = ""
    """What the reader should know: why there are no hits, what was left out."""
    trace: Mapping[str, Any] = field(default_factory=dict)
    """JSON-like: per leg how many candidates and milliseconds, the fusion, what was dropped."""
