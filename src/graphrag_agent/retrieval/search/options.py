"""How a knowledge base searches, and how one search may differ from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from graphrag_agent.retrieval.search.fusion import checked_fusion
from graphrag_agent.retrieval.search.strategies import DIRECT, QueryWriter, Strategy, build_strategy, name_strategy


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

    def asked(
        self,
        *,
        fusion: str | None = None,
        strategy: str | Strategy | None = None,
        rerank: bool | None = None,
        diversity: bool | None = None,
    ) -> SearchOptions:
        """The options of one search; None leaves what the knowledge base has.

        A strategy that nobody can write for is no error here: the search does without, and says so. Raises
        SettingsError for unknown names.
        """
        return replace(
            self,
            fusion=self.fusion if fusion is None else checked_fusion(fusion),
            strategy=self.strategy if strategy is None else name_strategy(strategy, self.strategy.writer),
            rerank=self.rerank and rerank is not False,
            diversity=self.diversity if diversity is None else diversity,
        )
