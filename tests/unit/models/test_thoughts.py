"""Thoughts that a server leaves in a reply's text."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from graphrag_agent.models.thoughts import ThoughtSplitter, part_unopened, with_thoughts_aside, without_thoughts

PARTS = st.sampled_from(["<think>", "</think>", "<thinking>", "<thi", "<", "</", "think>", "a", " ", "\n", "Ten days."])


def part(pieces: list[str], *, is_opened: bool = False) -> tuple[str, str]:
    splitter = ThoughtSplitter(is_opened=is_opened)
    parts = [*map(splitter.feed, pieces), splitter.close()]
    return "".join(part.said for part in parts), "".join(part.thought for part in parts)


@pytest.mark.parametrize(
    ("text", "said", "thought"),
    [
        ("<think>Ten, I guess.</think>\n\nTen days.", "Ten days.", "Ten, I guess."),
        ("\n <Thinking>\nhm\n</Thinking>Ten\n days.", "Ten\n days.", "\nhm\n"),
        ("<think></think>Ten days.", "Ten days.", ""),
        ("<think>cut off here", "", "cut off here"),
        ("Ten <think>days</think>.", "Ten <think>days</think>.", ""),
        ("<thin ice> is thin", "<thin ice> is thin", ""),
        ("<thi", "<thi", ""),
        ("", "", ""),
    ],
)
def test_what_stands_in_tags_at_the_beginning_is_thought(text: str, said: str, thought: str) -> None:
    assert part([text]) == (said, thought)
    assert part(list(text)) == (said, thought)


@given(st.lists(PARTS, max_size=12).map("".join), st.lists(st.integers(0, 80), max_size=6), st.booleans())
def test_the_cuts_of_a_reply_do_not_matter(text: str, cuts: list[int], is_opened: bool) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[start:end] for start, end in pairwise(places)]
    (said, thought), whole = part(pieces, is_opened=is_opened), part([text], is_opened=is_opened)
    assert said == whole[0]
    assert thought == whole[1] or text == said  # what goes out as thought comes again where it was text


@pytest.mark.parametrize(
    ("text", "said", "thought"),
    [
        ("Ten, I guess.\n</think>\n\nTen days.", "Ten days.", "Ten, I guess.\n"),
        ("Ten, I guess.</think>Ten days.", "Ten days.", "Ten, I guess."),
        ("<think>Ten, I guess.</think>Ten days.", "Ten days.", "Ten, I guess."),
        ("Ten days.", "Ten days.", "Ten days."),  # text after all: it comes again
        (" ", " ", ""),
    ],
)
def test_after_an_opening_tag_in_the_prompt_a_reply_begins_with_thoughts(text: str, said: str, thought: str) -> None:
    assert part([text], is_opened=True) == (said, thought)
    assert part(list(text), is_opened=True)[0] == said


def test_a_reply_that_is_cut_off_among_supposed_thoughts_stays_thought() -> None:
    splitter = ThoughtSplitter(is_opened=True)
    assert splitter.feed("Ten, I gu") == ("", "Ten, I gu")
    assert splitter.close(is_cut_off=True) == ("", "")


@pytest.mark.parametrize(
    ("text", "parted"),
    [
        ("Ten, I guess.\n</think>\n\nTen days.", ("Ten days.", "Ten, I guess.\n")),
        ("</think>Ten days.", ("Ten days.", "")),
        ("Hm.\n </THINKING> \nTen\n</think>\ndays.", ("Ten\n</think>\ndays.", "Hm.\n")),
        ("Hm.\n</think>", ("", "Hm.\n")),
        ("It ends with </think> or\n<think>", None),
        ("Write:\n```\n</think>\n```", None),
        ("Write\n<think>\nso\n</think>\nalways.", None),
        ("Ten days.", None),
        ("", None),
    ],
)
def test_thoughts_may_end_with_a_tag_and_begin_with_none(text: str, parted: tuple[str, str] | None) -> None:
    assert part_unopened(text) == parted


def test_a_text_without_its_thoughts() -> None:
    assert without_thoughts("<think>a</think> b <thinking>c") == "b"
    assert without_thoughts("a\n</think>\n\nb") == "b"


THOUGHT = "<think>Hm.</think>\n\nTen days."
UNOPENED = "Hm.\n</think>\n\nTen days."


@pytest.mark.parametrize(
    ("content", "left", "thought", "id_"),
    [
        (THOUGHT, "Ten days.", "Hm.", "m1"),
        (UNOPENED, "Ten days.", "Hm.\n", "m1-answer"),
        ("<think></think>Ten days.", "Ten days.", None, "m1"),
        ("<think>cut off", "", "cut off", "m1"),
        ([THOUGHT], ["Ten days."], "Hm.", "m1"),
        ([{"type": "text", "text": "<think>Hm.</think>"}], [], "Hm.", "m1"),
        (
            [{"type": "image", "url": "u"}, {"type": "text", "text": UNOPENED, "index": 1}, "More."],
            [{"type": "image", "url": "u"}, {"type": "text", "text": "Ten days.", "index": 1}, "More."],
            "Hm.\n",
            "m1-answer",
        ),
    ],
)
def test_a_messages_thoughts_are_put_aside(
    content: str | list[str | dict[str, object]], left: object, thought: str | None, id_: str
) -> None:
    message = AIMessage(content, id="m1", additional_kwargs={"refusal": ""})
    parted = with_thoughts_aside(message)
    assert (parted.content, parted.id) == (left, id_)
    assert parted.additional_kwargs == {"refusal": ""} | ({"reasoning_content": thought} if thought else {})
    assert message.content == content, "the given one stays as it is"


@pytest.mark.parametrize(
    "content", ["Ten days.", "", [], "A `<think>` tag", [{"type": "image", "url": "u"}], [{"type": "text"}]]
)
def test_a_message_without_thoughts_is_the_same(content: str | list[str | dict[str, object]]) -> None:
    message = AIMessage(content)
    assert with_thoughts_aside(message) is message


@pytest.mark.parametrize("content", [THOUGHT, UNOPENED])
def test_where_thoughts_stand_aside_already_a_tag_is_text(content: str) -> None:
    message = AIMessage(content, additional_kwargs={"reasoning_content": "Let me see."})
    assert with_thoughts_aside(message) is message
    message = AIMessage([{"type": "thinking", "thinking": "Let me see."}, {"type": "text", "text": content}])
    assert with_thoughts_aside(message) is message
