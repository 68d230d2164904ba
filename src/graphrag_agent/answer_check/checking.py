"""The check of a whole answer: each cited sentence against what it cites, and sources against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from graphrag_agent.answer_check.claims import Claim, find_claims
from graphrag_agent.answer_check.conflicts import find_conflicts
from graphrag_agent.answer_check.judging import SUPPORTED_FROM, Verdict, judge
from graphrag_agent.answer_check.passages import Passage, PassageSentence, Text, best_sentences
from graphrag_agent.citations import Citation, CitedText, Evidence, Quote, Support
from graphrag_agent.models.sentences import split_sentences

_WORST: tuple[Support, ...] = ("unsupported", "weak", "supported")
MAX_CHECKED = 200
"""Cited sentences that are checked; a longer answer is no answer."""
MIN_WORDS = 5
"""Of a sentence in another script than its source, for it to be more than a greeting."""
_LATIN = frozenset({"english", "latin"})
"""One from the other is only guessed, so words must tell."""


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A cited sentence of the answer and what the check says of it."""

    start: int
    """In the answer's text, marks included."""
    end: int
    ids: tuple[str, ...]
    support: Support
    reasons: tuple[str, ...] = ()

    @property
    def told(self) -> dict[str, Any]:
        """JSON-like form."""
        return {
            "start": self.start,
            "end": self.end,
            "ids": list(self.ids),
            "support": self.support,
            "reasons": list(self.reasons),
        }


@dataclass(frozen=True, slots=True)
class AnswerCheck:
    """What the check says of an answer. It compares words and facts; it proves nothing."""

    citations: tuple[Citation, ...]
    """Those of the answer, with support and quotes."""
    sentences: tuple[CheckedSentence, ...]
    conflicts: tuple[str, ...] = ()
    counts: Mapping[Support, int] = field(default_factory=dict)

    @property
    def told(self) -> dict[str, Any]:
        """For the outcome: counts, the support of each citation, and the sentences in doubt."""
        if not self.sentences:
            return {}
        return {
            **{support: self.counts.get(support, 0) for support in reversed(_WORST)},
            "citations": {citation.id: citation.support for citation in self.citations if citation.support},
            "doubts": [sentence.told for sentence in self.sentences if sentence.support != "supported"],
        }


def check_answer(cited: CitedText, evidence: Mapping[str, Evidence]) -> AnswerCheck:
    """Each cited sentence of the answer held against the evidence it cites."""
    passages = {citation.id: Passage(evidence[citation.id]) for citation in cited.citations}
    judged = [
        (claim, judge(claim.text, [passages[id_] for id_ in claim.ids])) for claim in find_claims(cited)[:MAX_CHECKED]
    ]
    sentences = tuple(
        CheckedSentence(claim.start, claim.end, claim.ids, verdict.support, verdict.reasons)
        for claim, verdict in judged
    )
    citations = tuple(_checked(citation, judged) for citation in cited.citations)
    used = [sentence for _, verdict in judged for sentence in verdict.sentences[:1]]
    counts = Counter(sentence.support for sentence in sentences)
    return AnswerCheck(citations, sentences, tuple(find_conflicts(used, list(passages.values()))), counts)


def draws_on(text: str, evidence: Sequence[Evidence]) -> bool:
    """Whether a sentence of the text says what stands in the evidence, as far as words tell."""
    passages = [Passage(item) for item in evidence]
    for sentence in split_sentences(text)[:MAX_CHECKED]:
        claim = Text(sentence.text)
        scripts = {_LATIN if passage.script in _LATIN else frozenset({passage.script}) for passage in passages}
        if not any(claim.script in same for same in scripts) and len(claim.term_set) >= MIN_WORDS:
            return True  # nothing to compare, so the benefit of the doubt is the reader's
        near = frozenset[str]().union(*(found.term_set for found in best_sentences(claim, passages)))
        if len(claim.term_set) > 1 and len(claim.term_set & near) >= SUPPORTED_FROM * len(claim.term_set):
            return True
    return False


def _checked(citation: Citation, judged: Sequence[tuple[Claim, Verdict]]) -> Citation:
    own = [verdict for claim, verdict in judged if citation.id in claim.ids]
    found_worst = (worst for worst in _WORST if any(verdict.support == worst for verdict in own))
    support: Support | Literal[""] = next(found_worst, "")
    found = {
        (sentence.start, sentence.end): sentence
        for verdict in own
        for sentence in verdict.sentences
        if sentence.evidence.id == citation.id
    }
    return replace(citation, support=support, quotes=tuple(_quote(found[place]) for place in sorted(found)))


def _quote(sentence: PassageSentence) -> Quote:
    return Quote(sentence.start, sentence.end, sentence.raw)
