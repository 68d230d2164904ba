"""What was streamed of an answer is the answer: no half mark, no id that stands for nothing."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk

from graphrag_agent import RagAgent, testing
from graphrag_agent.adapters.openai_chat import ChatStream
from graphrag_agent.events import AnswerReady, TextDelta
from graphrag_agent.models.text_tools.model import TextToolsModel
from graphrag_agent.testing import ScriptedChatModel, call
from tests.canned import CannedKnowledge, id_of

CITED = id_of("All about leave.")
MARKS = [f"[{CITED}]", f"[{CITED.upper()}, x9y8z]", "[x9y8z]", f"【{CITED}】", f"`[{CITED}]`"]
PARTS = st.sampled_from([*MARKS, " ", "\n", "Ten days", ".", "[1]", "[Company]", "(a)", ":", "`code`"])


def deltas_and_answer(rag: RagAgent, **options: Any) -> tuple[list[TextDelta], AnswerReady]:
    events = list(rag.stream("How long?", **options))
    (ready,) = [event for event in events if isinstance(event, AnswerReady)]
    return [e for e in events if isinstance(e, TextDelta) and e.message_id == ready.message_id], ready


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.lists(PARTS, min_size=1, max_size=12).map("".join), st.integers(1, 9))
def test_the_deltas_add_up_to_the_final_text(monkeypatch: pytest.MonkeyPatch, text: str, size: int):
    monkeypatch.setattr(testing, "PIECE_CHARACTERS", size)
    answer = f"So: {text} end"
    rag = RagAgent(
        model=ScriptedChatModel(call("knowledge_search", query="leave"), answer), knowledge=CannedKnowledge()
    )
    deltas, ready = deltas_and_answer(rag)
    assert "".join(delta.text for delta in deltas) == ready.text
    if "][" not in answer and "](" not in answer:  # there a bracket may be half of a link, which is left alone
        assert "x9y8z" not in ready.text


@pytest.mark.parametrize("way", ["one_shot", "text", "last call"])
def test_the_ids_of_the_turn_are_known_whichever_way_the_evidence_came(way: str):
    said = f"Ten days [{CITED}], not five [x9y8z]."
    steps: list[Any] = [call("knowledge_search", query="leave"), said]
    if way == "one_shot":
        steps = [said]
    model: Any = ScriptedChatModel(*steps)
    if way == "text":
        asked = '<tool_call>{"name": "knowledge_search", "arguments": {"query": "leave"}}</tool_call>'
        model = TextToolsModel(inner=ScriptedChatModel(asked, said))
    context = {"one_shot": {"retrieval": "one_shot"}, "last call": {"max_rounds": 1}}.get(way, {})
    knowledge = CannedKnowledge(lambda query: ["All about leave."])
    deltas, ready = deltas_and_answer(RagAgent(model=model, knowledge=knowledge), context=context)
    assert "".join(delta.text for delta in deltas) == ready.text == f"Ten days [{CITED}], not five."


@pytest.mark.parametrize(
    "context",
    [{"retrieval": "none"}, {"retrieval": "one_shot"}, {"tools": ()}, {}, {"max_rounds": 1}],
    ids=["none", "one shot", "no tools", "tools", "last call"],
)
def test_markup_is_no_text_whatever_is_offered(context: dict[str, Any]):
    said = 'Hermes models write <tool_call>{"name": "f", "arguments": {}}</tool_call> to call f.'
    steps = [call("knowledge_search", query="leave")] if "max_rounds" in context else []
    rag = RagAgent(model=ScriptedChatModel(*steps, said, "Done."), knowledge=CannedKnowledge())
    deltas, ready = deltas_and_answer(rag, context=context)
    assert "".join(delta.text for delta in deltas) == ready.text
    assert "<tool_call>" not in ready.text


@pytest.mark.parametrize("ids", [("resp_1", None), ("resp_1", "", None), ("resp_1",), (None,), ("a", "b")], ids=str)
def test_the_deltas_have_the_answers_id_though_the_provider_tells_it_once(ids: tuple[str | None, ...]):
    class ToldOnce(ScriptedChatModel):
        async def _astream(self, *args: Any, **options: Any) -> Any:
            given = list(ids)
            async for chunk in super()._astream(*args, **options):
                assert isinstance(chunk.message, AIMessageChunk)
                id_ = given.pop(0) if len(given) > 1 else given[0]
                yield ChatGenerationChunk(message=chunk.message.model_copy(update={"id": id_}))

    events = list(RagAgent(model=ToldOnce("Ten days a year.")).stream("How long?"))
    (ready,) = [event for event in events if isinstance(event, AnswerReady)]
    assert {event.message_id for event in events if isinstance(event, TextDelta)} == {ready.message_id}
    stream = ChatStream(model="m", created=0)
    written = [chunk["choices"][0]["delta"].get("content") or "" for event in events for chunk in stream.chunks(event)]
    assert "".join(written) == "Ten days a year."
