"""What the fake model answers, and the search results that it answers from. Pure, and the same for every contender."""

from __future__ import annotations

import asyncio
import unicodedata
import uuid
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from graphrag_agent.documents import Chunk, Hit, assign_short_ids
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.retrieval.search.result import SearchResult

QUESTION = "Compare the notice period, the probation and the travel limits of both offices."
ROUNDS: tuple[tuple[str, ...], ...] = (
    ("notice period office north", "notice period office south"),
    ("probation office north", "probation office south"),
    ("travel limits office north", "travel limits office south"),
)
MODEL_CALLS = len(ROUNDS) + 1
SAME_SEARCH: tuple[tuple[dict[str, Any], ...], ...] = (
    ({"query": "notice period office north"}, {"query": " Notice  PERIOD office north "}),
    ({"top_k": 5, "query": "notice period office north"}, {"query": "ｎｏｔｉｃｅ period office north"}),
    ({"query": "office north, notice period"}, {"query": "North office: notice period?"}),
)
"""One search in six spellings: blanks and case, a default spelt out, Unicode form, order and punctuation of words."""

ANSWER_TOKENS, SHORT = 200, 10
"""Tokens of an answer; short in `eager`, where the answer's own streaming is not the point."""
HITS = 5
HIT_CHARACTERS = 400
"""Five passages of this length are about 2 KB a search, the size of an ordinary knowledge base's answer."""

CALL_DONE_SECONDS, MESSAGE_DONE_SECONDS, SLOW_TOOL_SECONDS = 0.05, 0.5, 0.3
"""The scenario `eager`: when its call is complete, when its message ends, how long its tool takes."""


class Reply(NamedTuple):
    """One message of the model: tool calls (their arguments), or text."""

    calls: tuple[dict[str, Any], ...] = ()
    text: str = ""
    spread: bool = False
    """The calls come first, then text until the message's end, as in `eager`."""


def reply_to(script: str, messages: Sequence[Mapping[str, Any]], *, has_tools: bool) -> Reply:
    """The next message of this script; how many rounds there were is read from the request."""
    done = _rounds_of_turn(messages)
    if not has_tools:
        return Reply(text=answer())
    if script == "runaway":
        return Reply(calls=({"query": f"another search, number {done + 1}"},))
    if script in ("eager", "brief"):
        first = Reply(({"query": ROUNDS[0][0]},), "Let me look that up.", spread=script == "eager")
        return Reply(text=answer(SHORT)) if done else first
    rounds = SAME_SEARCH if script == "repeated" else tuple(tuple({"query": q} for q in batch) for batch in ROUNDS)
    return Reply(calls=rounds[done]) if done < len(rounds) else Reply(text=answer())


@cache
def answer(tokens: int = ANSWER_TOKENS) -> str:
    """The final text; three of its tokens are citations of what the first round finds."""
    words = [f"word{at}" for at in range(tokens)]
    for share, hit in zip((0.2, 0.5, 0.8), found(ROUNDS[0][0]), strict=False):
        words[int(share * tokens)] = f"[{hit.id}]"
    return " ".join(words)


@cache
def found(query: str) -> tuple[Hit, ...]:
    """The hits for a query; they depend on its words alone, not on their order or spelling."""
    words = "".join(c if c.isalnum() else " " for c in unicodedata.normalize("NFKC", query).casefold()).split()
    topic = " ".join(sorted(words))
    chunks = [_passage(topic, place) for place in range(HITS)]
    ids = assign_short_ids([chunk.id for chunk in chunks])
    return tuple(Hit(ids[chunk.id], chunk, 1.0 - 0.1 * place) for place, chunk in enumerate(chunks))


class CannedKnowledge:
    """A knowledge base that costs nothing to search and counts its searches."""

    def __init__(self, *, delay_seconds: float = 0.0) -> None:
        self.searches = 0
        self._delay_seconds = delay_seconds

    async def asearch(self, query: str, *, scope: Scope | None = None, top_k: int = HITS) -> SearchResult:
        """The canned hits, after the delay."""
        self.searches += 1
        if self._delay_seconds:
            await asyncio.sleep(self._delay_seconds)
        return SearchResult(query, found(query)[:top_k])


async def search_text(knowledge: CannedKnowledge, query: str, top_k: int = HITS) -> str:
    """A search as the text that the model gets, for all but our graph, which has its own form."""
    result = await knowledge.asearch(query, top_k=top_k)
    return "\n\n".join(f"[{hit.id}] {hit.chunk.title} > {hit.chunk.heading}\n{hit.chunk.text}" for hit in result.hits)


def _passage(topic: str, place: int) -> Chunk:
    text = (f"Passage {place} about {topic} says what holds, since when, and for whom. " * 10)[:HIT_CHARACTERS]
    return Chunk(
        id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{topic}|{place}")),
        document_id=f"handbook-{place}",
        tenant="default",
        collection="default",
        groups=(),
        source=f"handbook-{place}.md",
        source_type="md",
        title=f"Handbook {place}",
        heading="Policy",
        page=None,
        position=place,
        text=text,
        start=place * HIT_CHARACTERS,
        end=(place + 1) * HIT_CHARACTERS,
    )


def _rounds_of_turn(messages: Sequence[Mapping[str, Any]]) -> int:
    rounds = 0
    for message in reversed(messages):
        if message["role"] == "user":
            break
        rounds += bool(message.get("tool_calls"))
    return rounds
