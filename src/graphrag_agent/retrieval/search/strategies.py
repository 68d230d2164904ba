"""How many queries a search makes of one: the query alone, several of one meaning, or a passage that would answer it.

Extra queries come from rules, or from a `QueryWriter`: a chat model behind a port. What it writes is checked like any
input, and a writer that fails or is late costs its queries only. The loop's code never chooses a strategy.
"""

from __future__ import annotations

import asyncio
import time
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, runtime_checkable

from graphrag_agent.errors import GraphragError, SettingsError
from graphrag_agent.retrieval.search.query_rules import extra_queries

StrategyName = Literal["direct", "multi_query", "hyde"]
STRATEGIES: tuple[StrategyName, ...] = ("direct", "multi_query", "hyde")

MAX_EXTRA_QUERIES = 4
"""Each costs one search of each leg; a question seldom has more sides."""
MAX_EXTRA_CHARACTERS = 300
MAX_PASSAGE_CHARACTERS = 1200
"""About a chunk: the passage is compared with chunks."""
WRITER_SECONDS = 5.0
"""A quarter of what the search tool may take; the query's own search goes on meanwhile."""
_READ = 50
"""Of what a writer gives, more is not even looked at."""


@runtime_checkable
class QueryWriter(Protocol):
    """What a strategy needs of a chat model."""

    async def write(self, query: str, kind: StrategyName) -> Sequence[str]:
        """For multi_query other wordings and parts of the query, for hyde one passage that would answer it."""
        ...


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy by name, and who writes for it."""

    name: StrategyName = "direct"
    writer: QueryWriter | None = None
    """None: multi_query goes by rules, hyde can't be done."""


DIRECT = Strategy()


@dataclass(frozen=True, slots=True)
class Expansion:
    """What is searched besides the query itself."""

    queries: tuple[str, ...] = ()
    writer: str = "none"
    """Who wrote them: none, rules or model."""
    failed: str = ""
    """Why there are none, where there should be some."""
    milliseconds: float = 0.0


def checked_strategy(name: str) -> StrategyName:
    """The name, if there is such a strategy. Raises SettingsError."""
    found = next((known for known in STRATEGIES if known == name), None)
    if found is None:
        raise SettingsError(f"strategy={name!r} is unknown: use one of {', '.join(STRATEGIES)}")
    return found


def name_strategy(given: str | Strategy, writer: QueryWriter | None) -> Strategy:
    """The strategy that is meant, with the writer where it has none. Raises SettingsError for an unknown name."""
    strategy = given if isinstance(given, Strategy) else Strategy(checked_strategy(given))
    return strategy if strategy.writer else replace(strategy, writer=writer)


def build_strategy(given: str | Strategy, writer: QueryWriter | None) -> Strategy:
    """`name_strategy` for good: raises SettingsError also for hyde without a writer."""
    strategy = name_strategy(given, writer)
    if strategy.name == "hyde" and strategy.writer is None:
        raise SettingsError(
            "strategy='hyde' needs a chat model that writes: set GRAPHRAG_MODEL to one other than offline, give "
            "query_writer=ChatQueryWriter(model), or use the strategy direct or multi_query"
        )
    return strategy


async def expand_query(strategy: Strategy, query: str) -> Expansion:
    """The strategy's extra queries; never raises, because the query itself can always be searched."""
    if strategy.name == "direct":
        return Expansion()
    if strategy.writer is None:
        if strategy.name == "hyde":
            return Expansion(failed="no chat model to write with")
        return Expansion(clean_queries(extra_queries(query), query, MAX_EXTRA_CHARACTERS), "rules")
    started = time.perf_counter()
    try:
        async with asyncio.timeout(WRITER_SECONDS):
            written = await strategy.writer.write(query, strategy.name)
        limit = MAX_PASSAGE_CHARACTERS if strategy.name == "hyde" else MAX_EXTRA_CHARACTERS
        queries, failed = clean_queries(written, query, limit), ""
    except TimeoutError:
        queries, failed = (), f"no answer within {WRITER_SECONDS:g} s"
    except Exception as error:  # a model behind a network may fail in any way
        queries, failed = (), str(error) if isinstance(error, GraphragError) else type(error).__name__
    if strategy.name == "hyde":
        queries = queries[:1]
    failed = failed or ("" if queries else "the model wrote nothing to search for")
    return Expansion(queries, "model", failed, round((time.perf_counter() - started) * 1000, 2))


def clean_queries(written: Iterable[object], query: str, max_characters: int) -> tuple[str, ...]:
    """At most MAX_EXTRA_QUERIES short lines without control characters, none said twice, none the query itself.

    Raises SettingsError for a writer that gives no list.
    """
    if isinstance(written, str | bytes) or not isinstance(written, Iterable):
        raise SettingsError(f"the query writer gave {type(written).__name__} instead of a list of texts")
    seen, kept = {_folded(query)}, []
    for _, text in zip(range(_READ), written, strict=False):
        line = _one_line(text[: max_characters * 4])[:max_characters].strip() if isinstance(text, str) else ""
        if any(character.isalnum() for character in line) and _folded(line) not in seen:
            seen.add(_folded(line))
            kept.append(line)
    return tuple(kept[:MAX_EXTRA_QUERIES])


def _one_line(text: str) -> str:
    # Cc control, Cf direction and zero-width marks, Cs halves of characters, Co and Cn nobody can read
    return " ".join("".join(" " if unicodedata.category(sign)[0] == "C" else sign for sign in text).split())


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).strip(" ?.!？。！")
