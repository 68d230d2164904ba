"""Texts cut at the end of a sentence, so that no condition or exception is lost from what it limits. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from graphrag_agent.models.sentences import Sentence, split_sentences
from graphrag_agent.token_estimate import UNITS_PER_TOKEN, count_token_units, estimate_tokens

_PHRASES = (
    "except, excepting, exception, exceptions, excluding, unless, only, if, however, but, provided, otherwise, "
    "although, though, nevertheless, nonetheless, yet, notwithstanding, until, whereas, instead, conversely, "
    "does not apply, do not apply, "
    "außer, ausser, ausgenommen, ausnahme, ausnahmen, sofern, soweit, nur, wenn, falls, jedoch, aber, allerdings, "
    "dennoch, sauf, excepté, hormis, cependant, toutefois, mais, si, seulement, pourvu, salvo, excepto, sino, pero, "
    "sin embargo, но, кроме, если, однако, исключение, исключением, исключения, исключений, только, зато, иначе, "
    "хотя, лишь, помимо, "
    "إلا, باستثناء, لكن, ولكن, إذا, وإذا, بشرط, ما لم, غير أن, سوى"
)
_PHRASE = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, _PHRASES.split(', ')))})(?!\w)", re.IGNORECASE)
_UNSPACED = re.compile(
    "除非|但|除外|除了|除.{0,20}外|例外|不过|然而|只有|仅限|仅当|如果|若|否则|"
    "ただし|但し|しかし|ただ|もっとも|場合|限り|限る|除く|除き|を除|以外|例外|なお|のみ|けれど|ものの|"
    "다만|단,|하지만|그러나|제외|예외|경우"
)
SEEN_BEHIND = 2_000
"""Characters behind a cut that are looked at, to know whether a sentence ends there."""


class Packed(NamedTuple):
    """The beginning of a text."""

    text: str
    left_out: int
    """Sentences behind it."""


def cut_to_sentences(text: str, max_tokens: int) -> Packed:
    """The longest beginning of whole sentences within the tokens; empty where not even the first ones fit.

    A sentence that limits the one before it (an exception, a condition, "however") stays with it, and so does what a
    colon announces: both are kept or both are left out.
    """
    if estimate_tokens(text) <= max_tokens:
        return Packed(text, 0)
    sentences = split_sentences(text)
    room, end = max_tokens * UNITS_PER_TOKEN, 0
    fitting = 0
    for sentence in sentences:
        room -= count_token_units(text[end : sentence.end])
        if room < 0:
            break
        fitting, end = fitting + 1, sentence.end
    whole = max((count for count in _group_ends(sentences) if count <= fitting), default=0)
    return Packed(text[: sentences[whole - 1].end] if whole else "", len(sentences) - whole)


def fitting_end(text: str, max_units: int) -> int:
    """Where the longest beginning within the units of `token_estimate` ends: at a sentence, as `sentence_end` says."""
    low, high = 1, len(text)
    while low < high:  # the cost grows with the length
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count_token_units(text[:middle]) <= max_units else (low, middle - 1)
    return sentence_end(text, low)


def sentence_end(text: str, max_characters: int) -> int:
    """Where the last whole sentence within the characters ends; in mid-sentence where not even the first one does.

    As in `cut_to_sentences`, what limits a sentence stays with it, as long as anything is left then.
    """
    if len(text) <= max_characters:
        return len(text)
    sentences = split_sentences(text[: max_characters + SEEN_BEHIND])
    fitting = sum(sentence.end <= max_characters for sentence in sentences)
    if not fitting:
        return max_characters
    return sentences[max((count for count in _group_ends(sentences) if count <= fitting), default=fitting) - 1].end


def limits_the_last(sentence: str) -> bool:
    """Whether the sentence carries a condition or exception, so that the one before may mean less than it says."""
    return bool(_PHRASE.search(sentence) or _UNSPACED.search(sentence))


def _group_ends(sentences: Sequence[Sentence]) -> Iterator[int]:
    """After how many sentences nothing would be parted that belongs together.

    A list of exceptions is whole: its items belong to the line that announces them.
    """
    lead: Sentence | None = None
    for count, (last, following) in enumerate(pairwise(sentences), start=1):
        lead = last if last.is_lead_in else lead if following.kind == "item" else None
        in_list = lead is not None and following.kind == "item" and limits_the_last(lead.text)
        if not (last.is_lead_in or in_list or limits_the_last(following.text)):
            yield count
    yield len(sentences)
