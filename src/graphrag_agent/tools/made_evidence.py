"""Evidence that is in no document of the knowledge base: a web page, rows of a database, a computed table."""

from __future__ import annotations

from graphrag_agent.citations import Evidence
from graphrag_agent.documents import short_id


def made_evidence(
    key: str, *, title: str, source: str, text: str, heading: str = "", is_computed: bool = False
) -> Evidence:
    """Evidence with an id that is stable for the key: the same page or query has the same id in every turn.

    `key` names what was looked at, its kind in front ("web:https://...", "sql:sales:SELECT ..."); `source` is what a
    reader goes by: a URL, a table, a cell range. Only `source`, `title` and `heading` are kept with a citation.
    `is_computed`: rows of a query or the result of a program, which have figures and few words.
    """
    return Evidence(
        id=short_id(key),
        chunk_id=key,
        document_id="",
        title=title,
        source=source,
        page=None,
        heading=heading,
        score=1.0,
        start=0,
        end=len(text),
        text=text,
        is_computed=is_computed,
    )
