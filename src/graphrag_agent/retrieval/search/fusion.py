"""Several rankings into one. Pure: leg name -> (id, score) pairs in, (id, score) pairs out, best first.

Scores at or below zero are no match and are dropped first; a leg votes once for an id; ties are broken by id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import stdev

from graphrag_agent.errors import SettingsError

Ranking = Sequence[tuple[str, float]]
Legs = Mapping[str, Ranking]

RRF_K = 60
"""From the paper (Cormack, Clarke, Büttcher 2009); how little the first ranks stand out."""
_MIDDLE = 0.5
"""Share of the vote where a leg can't tell its hits apart."""


def fuse_dbsf(legs: Legs) -> list[tuple[str, float]]:
    """Distribution-based: each leg's scores mapped from mean ± 3 standard deviations to 0..1, then added up."""
    return _summed({name: _normalized(ranking, _three_sigma) for name, ranking in _cleaned(legs).items()})


def fuse_min_max(legs: Legs, *, weights: Mapping[str, float] | None = None) -> list[tuple[str, float]]:
    """Each leg's scores mapped from worst..best to 0..1, then added up by weight (1 where none is given)."""
    return _summed(
        {name: _normalized(ranking, _range) for name, ranking in _cleaned(legs).items()},
        weights or {},
    )


def fuse_rrf(legs: Legs, *, k: int = RRF_K) -> list[tuple[str, float]]:
    """Reciprocal rank: the sum of 1 / (k + rank) over the legs, ranks from 1."""
    return _summed(
        {
            name: [(key, 1 / (k + rank)) for rank, (key, _) in enumerate(ranking, start=1)]
            for name, ranking in _cleaned(legs).items()
        }
    )


FUSIONS: Mapping[str, Callable[[Legs], list[tuple[str, float]]]] = {
    "dbsf": fuse_dbsf,
    "rrf": fuse_rrf,
    "min_max": fuse_min_max,
}
"""By the name that settings know them by; the first is the default."""


def checked_fusion(name: str) -> str:
    """The name, if there is such a fusion. Raises SettingsError."""
    if name not in FUSIONS:
        raise SettingsError(f"fusion={name!r} is unknown: use one of {', '.join(FUSIONS)}")
    return name


def _cleaned(legs: Legs) -> dict[str, list[tuple[str, float]]]:
    cleaned = {}
    for name, ranking in legs.items():
        best: dict[str, float] = {}
        for key, score in ranking:
            if score > 0:
                best[key] = max(score, best.get(key, score))
        cleaned[name] = _ordered(best)
    return cleaned


def _ordered(scores: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def _normalized(ranking: Ranking, bounds: Callable[[list[float]], tuple[float, float]]) -> list[tuple[str, float]]:
    scores = [score for _, score in ranking]
    low, high = bounds(scores) if len(scores) > 1 else (0.0, 0.0)
    if low == high:
        return [(key, _MIDDLE) for key, _ in ranking]
    return [(key, (score - low) / (high - low)) for key, score in ranking]


def _three_sigma(scores: list[float]) -> tuple[float, float]:
    middle, spread = sum(scores) / len(scores), stdev(scores)
    return middle - 3 * spread, middle + 3 * spread


def _range(scores: list[float]) -> tuple[float, float]:
    return min(scores), max(scores)


def _summed(votes: Legs, weights: Mapping[str, float] | None = None) -> list[tuple[str, float]]:
    total: dict[str, float] = defaultdict(float)
    for name, ranking in votes.items():
        for key, share in ranking:
            total[key] += share * (weights or {}).get(name, 1.0)
    return _ordered(total)
