"""What a search gives back."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphrag_agent.documents import Hit

_SHOWN_CHARACTERS = 300
"""Of a passage in a notebook; the hit has it whole."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits for one query, best first. A notebook shows it as a table."""

    query: str
    hits: tuple[Hit, ...]
    note: str = ""
    """What the reader should know: why there are no hits, what was left out."""
    trace: Mapping[str, Any] = field(default_factory=dict)
    """JSON-like: the strategy and its queries, per leg how many candidates and milliseconds, the fusion, the reranker,
    and what was dropped and why (`dropped`)."""

    def _repr_html_(self) -> str:
        """Every text is escaped: documents are written by strangers."""
        legs = sorted({leg for hit in self.hits for leg in hit.legs})
        head = ["id", "score", *legs, "source", "passage"]
        rows = "".join(_row("td", _cells(hit, legs)) for hit in self.hits)
        lines = [f"<b>{html.escape(self.query[:_SHOWN_CHARACTERS])}</b>", *map(html.escape, self.summary())]
        table = f"<table>{_row('th', head)}{rows}</table>" if self.hits else ""
        return f"<div>{'<br>'.join(lines)}{table}</div>"

    def summary(self) -> list[str]:
        """The note and the trace in a few lines of plain text."""
        lines = [f"Note: {self.note}"] if self.note else []
        if "legs" not in self.trace:
            return lines
        trace = self.trace
        strategy = ", ".join(str(value) for value in trace["strategy"].values())
        again = trace["rerank"].get("name") or trace["rerank"].get("skipped", "")
        lines.append(f"strategy: {strategy} · fusion: {trace['fusion']} · rerank: {again} · {trace['milliseconds']} ms")
        lines += [f"query {number}: {query}" for number, query in enumerate(trace["queries"], start=1)]
        lines += [f"{leg}: {_told(found)}" for leg, found in trace["legs"].items()]
        dropped = Counter(str(item["why"]) for item in trace["dropped"])
        lines += [f"dropped: {', '.join(f'{count} {why}' for why, count in dropped.items())}"] if dropped else []
        return lines


def _told(found: Mapping[str, Any]) -> str:
    if "candidates" not in found:
        return ", ".join(f"{name}: {value}" for name, value in found.items())
    more = {name: value for name, value in found.items() if name not in {"candidates", "milliseconds"}}
    told = f"{found['candidates']} candidates in {found['milliseconds']} ms"
    return ", ".join([told, *(f"{name}: {value}" for name, value in more.items())])


def _cells(hit: Hit, legs: Sequence[str]) -> list[str]:
    places = [f"{at.rank} ({at.score:.3g})" if (at := hit.legs.get(leg)) else "" for leg in legs]
    text = " ".join(hit.chunk.text.split())
    shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]} …"
    source = f"{hit.chunk.source}, page {hit.chunk.page}" if hit.chunk.page else hit.chunk.source
    return [hit.id, f"{hit.score:.3f}", *places, source, shown]


def _row(cell: str, values: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{cell}>{html.escape(value)}</{cell}>' for value in values)}</tr>"
