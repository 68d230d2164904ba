"""A message taken apart: small talk or not, and which searches it asks for.

`split_question` is the entry. Everything is pattern work in English, Chinese and Russian; what no pattern knows stays
one search with the user's words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_agent.models.words import find_question_words

MAX_PARTS = 4
ELLIPTIC_WORDS = 3
"""A question with a connective or a pronoun and at most so many content words leans on the one before."""

_SMALL_TALK = re.compile(
    r"(?:(?:hi|hello|hey|good (?:morning|afternoon|evening|day)|greetings)(?: there| all| everyone)?"
    r"|(?:many )?thanks?(?: you)?(?: (?:very|so) much| a lot)?|(?:good)?bye|see you|ok(?:ay)?|great|cool"
    r"|who are you|what are you|what can you do|what is your name|how are you(?: doing)?|nice to meet you"
    r"|привет|здравствуй(?:те)?|добрый (?:день|вечер)|доброе утро|спасибо(?: большое)?|благодарю|пока|до свидания"
    r"|кто (?:ты|вы)(?: так(?:ой|ая|ие))?|что (?:ты|вы) умее(?:шь|те)|как дела|как (?:тебя|вас) зовут|хорошо|понятно"
    r"|你好|您好|嗨|哈喽|早上好|晚上好|谢谢(?:你|您)?|多谢|再见|拜拜|你是谁|您是谁|你(?:能|会)做什么|你叫什么(?:名字)?|你好吗|好的)"
)
_GREETING = re.compile(
    r"(?:(?:hi|hello|hey)(?: there)?|good (?:morning|afternoon|evening)|привет|здравствуй(?:те)?|добрый (?:день|вечер))"
    r"\s*[,!.]\s*|(?:你好|您好)\s*+(?:[，,！!。]\s*+)?+(?=\S)",
    re.IGNORECASE,
)
_SENTENCE_GAP = re.compile(r"(?<=[?？;；!！\n。])|(?<=\.)(?=\s)")
_BLANKS = re.compile(r"[^\S\n]+")
_EDGE = " \t\r\n?？!！.。;；,，:：\"'“”«»"
_JOINED = re.compile(
    r",?\s+(?:and|и)\s+(?=(?:how|what|when|where|who|why|which|как|какой|какие|когда|где|кто|почему|сколько)\s)"
)

_LEAD = re.compile(r"(?:(?:please|can you|could you|пожалуйста|请问|请|帮我)[\s,]*)*", re.IGNORECASE)
_DIFFERENCE = (
    r"(?:what(?:'s| is| are)|explain|describe|tell me|show|is there)?\s*"
    r"(?:about\s+)?(?:the\s+|any\s+|a\s+)?differences?"
)
_COMPARISONS = tuple(
    re.compile(pattern + r"[\s?？.。!！]*", re.IGNORECASE)
    for pattern in (
        r"compare\s+(?P<list>.+)",
        _DIFFERENCE + r"\s+between\s+(?P<list>.+)",
        r"(?:in what way|how)\s+(?:do|does|is|are)\s+(?P<list>.+?)\s+(?:differ|compare)",
        r"how\s+(?:do|does|is|are)\s+(?P<a>.+?)\s+(?:differ(?:ent)?\s+from|compare\s+(?:to|with))\s+(?P<b>.+)",
        r"(?P<a>.+?)\s+(?:vs\.?|versus|против)\s+(?P<b>.+)",
        r"сравни(?:те|ть)?\s+(?P<list>.+)",
        r"(?:в\s+ч[её]м|какая|каковы?|объясни(?:те)?|есть\s+ли)?\s*(?:разниц[ауые]|различи[еяй]|отличи[еяй])\s+между\s+(?P<list>.+)",
        r"чем\s+отлича[ею]тся\s+(?P<a>.+?)\s+от\s+(?P<b>.+)",
        r"чем\s+(?P<a>.+?)\s+отлича[ею]тся\s+от\s+(?P<b>.+)",
        r"(?:比较|对比)(?:一下)?(?P<list>.+)",
        r"(?P<list>.+?)(?:之间)?(?:有什么|有何|有哪些|的)(?:区别|不同|差别|差异)(?:是什么|在哪里|在哪|吗|呢)?",
        r"(?P<list>.+?)(?:有什么|有何)不一样",
    )
)
_SEPARATOR = re.compile(r"\s*,?\s+(?:and|with|to|against|versus|vs\.?|и|с|со)\s+|\s*[,，、]\s*", re.IGNORECASE)
_HAN_SEPARATORS = "和与跟及"
"""Likeliest first: each of them is also a part of ordinary words."""

_TAIL = re.compile(r"\s+(?:for|in|at|on|under|during|within|when|if|для|в|во|на|при|по|у|за)\s+\S.*", re.IGNORECASE)
_HEAD = re.compile(
    r"(?P<head>.+?\s(?:of|for|in|at|on|under|during|within|для|в|во|на|при|по|у|за)\s)(?:the\s)?\S", re.IGNORECASE
)
_HAN_TAIL = re.compile(r"(?:的|在)[^的在]+$")
_HAN_HEAD = re.compile(r"^[^的]+的")

_CONNECTIVE = re.compile(
    r"(?:and|but|also|or)\b[\s,]*(?:what about|how about|for)?\s*|(?:what|how) about\s+|same for\s+"
    r"|а\s+(?:как насч[её]т|что насч[её]т|если)?\s*|и\s+|но\s+|那么?(?=\S)|那|还有|以及",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"\b(?:it|its|they|them|their|those|these|that one|он|она|оно|они|его|е[её]|их|им|этого|этой|этом)\b"
    r"|它|他们|她们|这个|那个",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class QuestionPart:
    """One thing that is asked for."""

    query: str
    """What to search with."""
    focus: str
    """The words of the query that set this part apart from its siblings or from the question before."""


def is_small_talk(message: str) -> bool:
    """Whether the message asks for nothing that documents could answer."""
    return not _segments(message)


def split_question(message: str, *, previous: Sequence[str] = ()) -> list[QuestionPart]:
    """At most four parts of the message; earlier questions, oldest first, complete one that leans on them."""
    before = ""
    for question in [*previous, message][-4:]:
        parts = _split_message(question, before)
        before = " ".join(part.query for part in parts) or before
    return parts


def _split_message(message: str, before: str) -> list[QuestionPart]:
    parts: list[QuestionPart] = []
    for piece in (piece for segment in _segments(message) for piece in _JOINED.split(segment)):
        compared = _compared(piece)
        for text, focus in compared or [(piece.strip(_EDGE),) * 2]:
            part = _completed(text, focus, before=parts[-1].query if parts and not compared else before)
            if part not in parts:
                parts.append(part)
        if len(parts) >= MAX_PARTS:  # each further one may lean on all before it
            break
    return parts[:MAX_PARTS]


def _segments(message: str) -> list[str]:
    """The questions in the message; a statement stays with the question next to it."""
    found: list[str] = []
    statement = ""
    message = _BLANKS.sub(" ", message)  # many in a row would be tried in every way to share them among two `\s`
    for piece in filter(None, (piece.strip() for piece in _SENTENCE_GAP.split(_without_greeting(message)))):
        core = piece.strip(_EDGE)
        if not core or _SMALL_TALK.fullmatch(core.casefold()):
            continue
        if piece.endswith((".", "。", "!", "！")) and not _compared(core):
            statement = f"{statement} {piece}".strip()
        else:
            found.append(f"{statement} {core}".strip())
            statement = ""
    if statement and found:
        found[-1] += f" {statement.strip(_EDGE)}"
    return found or ([statement.strip(_EDGE)] if statement else [])


def _without_greeting(message: str) -> str:
    greeting = _GREETING.match(message.lstrip())
    return message.lstrip()[greeting.end() :] if greeting else message


def _compared(segment: str) -> list[tuple[str, str]]:
    """(query, own words) of the things that the segment compares; empty when it compares nothing."""
    lead = _LEAD.match(segment)
    segment = segment[lead.end() :] if lead else segment
    for pattern in _COMPARISONS:
        match = pattern.fullmatch(segment)
        if match:
            groups = match.groupdict()
            things = _split_list(groups["list"]) if groups.get("list") else [groups["a"], groups["b"]]
            things = [re.sub(r"^(?:and|the|a|an|и)\s+", "", thing.strip(_EDGE), flags=re.I) for thing in things]
            things = [thing for thing in things if thing][:MAX_PARTS]
            if len(things) > 1:
                return list(zip(_share_words(things), things, strict=True))
    return []


def _split_list(listed: str) -> list[str]:
    things = _SEPARATOR.split(listed)
    han = next((mark for mark in _HAN_SEPARATORS if re.search(rf"[\u4e00-\u9fff]\s*{mark}\s*\S", listed)), None)
    return [part for thing in things for part in thing.split(han)] if han else things


def _share_words(things: list[str]) -> list[str]:
    """The things with the words that stand at one of them and belong to all."""
    first, last = things[0], things[-1]
    if re.search(r"[\u4e00-\u9fff]", first + last):
        return _share_han_words(things)
    tail = _TAIL.search(last)
    if tail and not _TAIL.search(first):
        things = [thing if _TAIL.search(thing) else thing + tail[0] for thing in things]
    elif not tail and (match := _HEAD.match(first)):
        head = match["head"]  # "the warranty of" the first is also that of the others
        rest = (thing if len(thing.split()) > 2 or _HEAD.match(thing) else head + thing for thing in things[1:])
        things = [first, *rest]
    words = _TAIL.sub("", last).split()
    return [_with_noun(thing, words) for thing in things]


def _with_noun(thing: str, words: list[str]) -> str:
    """Gives "sick" beside "parental leave" its noun; a proper name lends nothing."""
    tail = _TAIL.search(thing)
    name = thing[: tail.start()] if tail else thing
    is_alike = len(words) > 1 and words[-1].islower() and name.islower() == words[0].islower()
    return f"{name} {words[-1]}{tail[0] if tail else ''}" if is_alike and len(name.split()) == 1 else thing


def _share_han_words(things: list[str]) -> list[str]:
    tail, head = _HAN_TAIL.search(things[-1]), _HAN_HEAD.search(things[0])
    if tail and not _HAN_TAIL.search(things[0]):
        return [thing if thing.endswith(tail[0]) else thing + tail[0] for thing in things]
    if head and not _HAN_HEAD.search(things[-1]):
        return [thing if thing.startswith(head[0]) else head[0] + thing for thing in things]
    return things


def _completed(text: str, focus: str, *, before: str) -> QuestionPart:
    connective = _CONNECTIVE.match(text)
    rest = text[connective.end() :].strip() if connective else text
    names_another = bool(connective) or text.endswith("呢")  # "and for contractors?"
    leans = names_another or bool(_PRONOUN.search(text))
    words = find_question_words(rest)
    if not before or not ((leans and len(words) <= ELLIPTIC_WORDS) or not words):
        return QuestionPart(text, focus)
    own = rest.removesuffix("呢").strip()
    carried = dict.fromkeys(word for stem, word in find_question_words(before).items() if stem not in words)
    query = f"{own} {' '.join(carried)}".strip()
    return QuestionPart(query, own if names_another and words else query)
