"""How a knowledge base searches, and how one search may differ from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict, Unpack

from graphrag_agent.retrieval.search.fusion import checked_fusion
from graphrag_agent.retrieval.search.strategies import DIRECT, QueryWriter, Strategy, build_strategy, name_strategy


class SearchChoices(TypedDict, total=False):
    """How one search may differ from what the knowledge base does; None and left out are the same."""

    fusion: str | None
    """dbsf, rrf or min_max."""
    strategy: str | Strategy | None
    """direct, multi_query or hyde."""
    rerank: bool | None
    """False leaves out the reranker; nothing switches one on that the knowledge base doesn't have."""
    diversity: bool | None
    """Whether hits that are like better ones give way to others."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Everything about a search that is no query, no scope and no number of hits."""

    fusion: str = "dbsf"
    strategy: Strategy = DIRECT
    rerank: bool = True
    """False leaves out the reranker, where there is one."""
    diversity: bool = False
    """Whether hits that are like better ones give way to others (MMR)."""

    @classmethod
    def of(cls, *, fusion: str, strategy: str | Strategy, writer: QueryWriter | None, diversity: bool) -> SearchOptions:
        """The options of a knowledge base. Raises SettingsError for what can't be done."""
        return cls(checked_fusion(fusion), build_strategy(strategy, writer), diversity=diversity)

    def asked(self, **choices: Unpack[SearchChoices]) -> SearchOptions:
        """The options of one search; None leaves what the knowledge base has.

        A strategy that nobody can write for is no error here: the search does without, and says so. Raises
        SettingsError for unknown names.
        """
        fusion, strategy, diversity = choices.get("fusion"), choices.get("strategy"), choices.get("diversity")
        return replace(
            self,
            fusion=self.fusion if fusion is None else checked_fusion(fusion),
            strategy=self.strategy if strategy is None else name_strategy(strategy, self.strategy.writer),
            rerank=self.rerank and choices.get("rerank") is not False,
            diversity=self.diversity if diversity is None else diversity,
        )
