"""An answer for readers who can't follow ids: one number for each document, its places and what was cited there."""

import pytest
from langchain_core.messages import AIMessage

from graphrag_agent.citations import Citation, Quote
from graphrag_agent.citations.annotations import annotated
from graphrag_agent.citations.rendering import QUOTE_CHARACTERS, as_footnotes, as_notes, as_plain


def citation(id_: str, document: str = "leave", **more: object) -> Citation:
    place = {"title": document.title(), "source": f"{document}.md", "page": None, "heading": "", "start": 0, "end": 9}
    return Citation(id=id_, document_id=document, **{**place, **more})  # type: ignore[arg-type]


LEAVE = citation("k3f2a", page=3, heading="Leave > Sick", quotes=(Quote(0, 9, "Ten days\na year."),))
OTHER_PAGE = citation("p4q5r", page=5)
TRAVEL = citation("m7xw2", "travel")
TEXT = "Ten days [k3f2a]. Trains [m7xw2, p4q5r], not `a[k3f2a]`."


def test_footnotes():
    assert as_footnotes(TEXT, [LEAVE, TRAVEL, OTHER_PAGE]) == (
        "Ten days [^1]. Trains [^2][^1], not `a[k3f2a]`.\n\n"
        "[^1]: Leave (leave.md), p. 3, Sick: “Ten days a year.”; p. 5\n"
        "[^2]: Travel (travel.md)"
    )


def test_plain_text_and_notes():
    body = "Ten days [1]. Trains [2, 1], not `a[k3f2a]`."
    notes = "1. Leave (leave.md), p. 3, Sick: “Ten days a year.”; p. 5\n2. Travel (travel.md)"
    assert as_plain(TEXT, [LEAVE, TRAVEL, OTHER_PAGE]) == f"{body}\n\nSources:\n{notes}"
    assert as_notes(TEXT, [LEAVE, TRAVEL, OTHER_PAGE]) == f"{body}\n\n{notes}"


@pytest.mark.parametrize(("language", "page", "sources"), [("ru", "с. 3", "Источники"), ("zh", "第3页", "来源")])
def test_labels_in_the_readers_language(language: str, page: str, sources: str):
    shown = as_plain("十天 [k3f2a]", [LEAVE], language=language)  # type: ignore[arg-type]
    assert f"\n\n{sources}:\n1. Leave (leave.md), {page}, Sick" in shown


def test_an_answer_without_citations_stays_as_it_is():
    assert as_footnotes("Hello [x].", []) == as_plain("Hello [x].", []) == as_notes("Hello [x].", []) == "Hello [x]."


def test_forty_sources_and_one_cited_five_times():
    many = [citation(f"a2b{one}{two}", f"doc{one}{two}") for one in "cdefg" for two in "23456789"]
    shown = as_footnotes(" ".join(f"[{it.id}]" for it in [*many, *many[:1] * 4]), many)
    assert shown.count("[^40]") == 2
    assert shown.count("[^1]") == 6
    assert shown.count("\n[^") == 40


def test_a_strangers_title_is_no_markdown_and_one_line():
    hostile = citation("k3f2a", title='x](http://evil) <img src=x>\n\n# "y" `z`', source="https://example.org/a?b=c")
    note = as_footnotes("Ten [k3f2a].", [hostile]).rpartition("[^1]: ")[2]
    assert "\n" not in note
    assert "<img" not in note.replace("\\<img", "")
    assert "](" not in note.replace("\\](", "")
    assert note.endswith("(<https://example.org/a?b=c>)")


def test_a_long_quote_is_cut_at_a_word():
    long = citation("k3f2a", quotes=(Quote(0, 999, "word " * 200),))
    quoted = as_plain("[k3f2a]", [long]).partition("“")[2]
    assert quoted.endswith("word …”")
    assert len(quoted) <= QUOTE_CHARACTERS + 4


def test_annotations_are_langchains_and_hold_no_text_of_the_source():
    content = annotated("Ten days [k3f2a]. So [m7xw2].", [LEAVE, citation("m7xw2", source="https://e.org/t")], SPANS)
    message = AIMessage(content)
    assert message.text == "Ten days [k3f2a]. So [m7xw2]."
    (block,) = message.content_blocks
    first, second = block["annotations"]  # type: ignore[typeddict-item]
    assert first == {
        "type": "citation",
        "start_index": 0,
        "end_index": 17,
        "title": "Leave",
        "extras": {"id": "k3f2a", "number": 0},
    }
    assert second["url"] == "https://e.org/t"
    assert annotated("Hello.", [], []) == "Hello."


SPANS = [(0, 17, ("k3f2a",)), (18, 29, ("m7xw2",))]
