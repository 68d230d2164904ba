"""Maximal marginal relevance: fewer passages that say what a better one has said. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphrag_agent.retrieval.search.fusion import Ranking

RELEVANCE_SHARE = 0.7
"""Of the vote; the rest goes to being unlike what is chosen already (RETRIEVAL.md 6)."""
DIVERSIFIED = 20
"""As many as a search may give the model; what comes after them stays where it is."""


def diversify(
    ranking: Ranking, similarity: Callable[[str, str], float], *, relevance_share: float = RELEVANCE_SHARE
) -> list[tuple[str, float]]:
    """The same pairs, the first 20 of them reordered.

    Next is always the one with the largest `share * relevance - (1 - share) * similarity to the likest chosen one`;
    relevance is the score between worst and best of the 20 as 0..1. Ties keep the order. Scores aren't changed, so they
    no longer fall from place to place.
    """
    waiting, behind = list(ranking[:DIVERSIFIED]), list(ranking[DIVERSIFIED:])
    relevance = _between_worst_and_best([score for _, score in waiting])
    value = {name: relevance_share * share for (name, _), share in zip(waiting, relevance, strict=True)}
    likest = dict.fromkeys(value, 0.0)
    chosen: list[tuple[str, float]] = []
    while waiting:
        following = max(waiting, key=lambda item: value[item[0]] - (1 - relevance_share) * likest[item[0]])
        waiting.remove(following)
        chosen.append(following)
        for name, _ in waiting:
            likest[name] = max(likest[name], similarity(name, following[0]))
    return chosen + behind


def _between_worst_and_best(scores: Sequence[float]) -> list[float]:
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]
