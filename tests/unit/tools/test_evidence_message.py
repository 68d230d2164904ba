"""Evidence written into a tool message and read back."""

from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.citations import Evidence
from graphrag_agent.graph.policy.pairing import tool_message
from graphrag_agent.tools.evidence_message import (
    chunk_ids_of,
    note_of,
    read_evidence,
    rename_collisions,
    render_evidence,
)
from graphrag_agent.tools.made_evidence import made_evidence

DOCUMENT = "Leave lasts ten days. It is paid.\n\nSick leave lasts longer. Ask the desk."
CALL = {"id": "1", "name": "knowledge_search"}


def evidence(start: int, end: int, *, name: str = "k3f2a", chunk: str = "c", **more) -> Evidence:
    text = DOCUMENT[start:end]
    return Evidence(name, chunk, "d", "Leave", "leave.md", None, "", 0.0, start, end, text, **more)


def message(*items: Evidence, note: str = ""):
    return tool_message(CALL, *render_evidence(items, note=note))


def test_what_is_written_is_read_back():
    items = [evidence(0, 21, merged=("x", "y"), left_out=2), evidence(22, 33, name="m7x2w", chunk="e")]
    told = message(*items, note="Try other words.")
    assert list(read_evidence([told]).values()) == items
    assert note_of(told) == "Try other words."
    assert chunk_ids_of(told) == {"c", "x", "y", "e"}
    assert 'note="… 2 sentences left out; read the document for more"' in told.text
    assert told.artifact["hits"][0]["merged"] == ["x", "y"]


def test_a_passage_with_a_note_of_its_own_is_no_note_of_the_message():
    item = Evidence("k3f2a", "c", "d", "T", "t", None, "", 0.5, 0, 20, "Text.\nNote: careful!")
    assert note_of(message(item)) == ""
    text, artifact = rename_collisions(message(item).text, message(item).artifact, {"k3f2a": "other"})
    assert text.endswith("Note: careful!\n</evidence>")
    assert artifact["hits"][0]["id"] != "k3f2a"


def test_renaming_keeps_what_else_the_artifact_has():
    told = message(evidence(0, 21))
    _, artifact = rename_collisions(told.text, {**told.artifact, "trace": {"fusion": "rrf"}}, {"k3f2a": "other"})
    assert artifact["trace"] == {"fusion": "rrf"}


def test_a_chunk_shown_alone_and_among_neighbours_has_the_text_of_both():
    alone, after, before = evidence(22, 33), evidence(22, 60, merged=("n",)), evidence(0, 33, merged=("p",))
    (both,) = read_evidence([message(alone), message(after), message(before)]).values()
    assert (both.start, both.end, both.text) == (0, 60, DOCUMENT[:60])
    assert both.merged == ("n", "p")


def test_texts_that_contradict_each_other_are_not_joined():
    other = Evidence("k3f2a", "c", "d", "Leave", "leave.md", None, "", 0.0, 22, 33, "It is free.")
    assert read_evidence([message(evidence(22, 33)), message(other)])["k3f2a"].text == "It is paid."


def made(text: str) -> Evidence:
    return made_evidence("web:https://a.example/", title="A", source="https://a.example/", text=text)


def test_made_evidence_of_one_key_has_the_texts_of_all_its_messages():
    told = [message(made(text)) for text in ("A pump.", "Made in Almaty.", "A pump.", "pump")]
    (found,) = read_evidence(told).values()
    assert (found.text, found.start, found.end) == ("A pump.\nMade in Almaty.", 0, 23)
    (again,) = read_evidence([message(found), message(made("12 kg."))]).values()
    assert (again.text, again.end) == ("A pump.\nMade in Almaty.\n12 kg.", 30)


@given(st.lists(st.tuples(st.integers(0, len(DOCUMENT)), st.integers(0, len(DOCUMENT))), min_size=1, max_size=5))
def test_a_union_is_always_exactly_the_document(spans: list[tuple[int, int]]):
    told = [message(evidence(min(span), max(span))) for span in spans]
    (found,) = read_evidence(told).values()
    assert found.text == DOCUMENT[found.start : found.end]
    assert found.start <= min(spans[0])
    assert found.end >= max(spans[0])
