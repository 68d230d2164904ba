"""Any model: native calls, calls as text, native models that forget, providers that take no tools."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from graphrag_agent import AgentContext, RagAgent, build_rag_graph
from graphrag_agent.events import AnswerReady, TextDelta, ThinkingDelta
from graphrag_agent.models.factory import load_chat_model
from graphrag_agent.testing import ScriptedChatModel, call
from tests.canned import CannedKnowledge, id_of
from tests.fake_openai import FakeOpenAI, HTTPFailure, RawStream, delta

QUESTION = "How long is sick leave?"
ASK = {"messages": [{"role": "user", "content": QUESTION}]}
CITED = id_of("All about sick leave.")
ANSWER = f"Ten days [{CITED}]."
AS_TEXT = {
    "own": '<tool_call name="knowledge_search">{"query": "sick leave"}</tool_call>',
    "hermes": '<tool_call>\n{"name": "knowledge_search", "arguments": {"query": "sick leave"}}\n</tool_call>',
    "llama": '<function=knowledge_search>{"query": "sick leave"}</function>',
    "python tag": '<|python_tag|>{"name": "knowledge_search", "parameters": {"query": "sick leave"}}',
    "mistral": '[TOOL_CALLS][{"name": "knowledge_search", "arguments": {"query": "sick leave"}}]',
    "bare json": '{"name": "knowledge_search", "arguments": {"query": "sick leave"}}',
}


@pytest.mark.parametrize("written", AS_TEXT.values(), ids=AS_TEXT.keys())
@pytest.mark.parametrize("native", [True, False], ids=["native", "declared without tools"])
def test_calls_written_as_text_are_calls(written: str, native: bool):
    knowledge = CannedKnowledge()
    with ScriptedChatModel(f"Let me look.\n{written}" if written[0] != "{" else written, ANSWER) as model:
        model.profile = {"tool_calling": native}
        agent = RagAgent(model=model, knowledge=knowledge)
        events = list(agent.stream(QUESTION))
    assert knowledge.queries == ["sick leave"]
    shown = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert shown.replace("Let me look.", "").strip() == ANSWER, "no markup is ever shown"
    assert model.requests[0].tools == (("knowledge_search",) if native else ())


def test_a_model_without_tools_is_told_how_to_call_and_gets_results_as_turns():
    with ScriptedChatModel(AS_TEXT["own"], ANSWER, profile={"tool_calling": False}) as model:
        out = build_rag_graph(model=model, knowledge=CannedKnowledge()).invoke(ASK)
    assert "knowledge_search" in model.requests[0].messages[0].text
    kinds = [message.type for message in model.requests[1].messages]
    assert kinds == ["system", "human", "ai", "human"]
    assert "All about sick leave." in model.requests[1].messages[-1].text
    assert (out["messages"][-1].text, out["outcome"]["ending"]) == (ANSWER, "answered")


def test_the_last_call_of_a_model_without_tools_has_no_tool_messages():
    with ScriptedChatModel(AS_TEXT["own"], "So far.", profile={"tool_calling": False}) as model:
        graph = build_rag_graph(model=model, knowledge=CannedKnowledge())
        out = graph.invoke(ASK, context=AgentContext(max_rounds=1))
    assert (out["outcome"]["ending"], out["messages"][-1].text) == ("max_rounds", "So far.")
    assert {message.type for message in model.requests[1].messages} == {"system", "human", "ai"}


def test_an_unreadable_call_is_asked_for_once_more_and_never_shown():
    broken = '<tool_call name="knowledge_search">{"query": "sick'
    with ScriptedChatModel(broken, AS_TEXT["own"], ANSWER, profile={"tool_calling": False}) as model:
        events = list(RagAgent(model=model, knowledge=CannedKnowledge()).stream(QUESTION))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)).strip() == ANSWER
    assert len(model.requests) == 3


def test_an_example_of_a_call_in_a_code_block_is_an_answer():
    example = f"Like this:\n```\n{AS_TEXT['hermes']}\n```"
    knowledge = CannedKnowledge()
    with ScriptedChatModel(example) as model:
        out = build_rag_graph(model=model, knowledge=knowledge).invoke(ASK)
    assert (knowledge.queries, out["messages"][-1].text) == ([], example)


def test_a_provider_that_takes_no_tools_is_asked_again_with_calls_as_text():
    refusal = HTTPFailure(400, "This model does not support tools")
    knowledge = CannedKnowledge()
    with FakeOpenAI(refusal, AS_TEXT["own"], ANSWER, AS_TEXT["own"], ANSWER) as server:
        model = load_chat_model("openai:local", base_url=server.base_url, max_retries=0)
        agent = RagAgent(model=model, knowledge=knowledge)
        first, second = agent.ask(QUESTION), agent.ask(QUESTION)
    assert (first.text, second.text) == (ANSWER, ANSWER)
    assert ["tools" in body for body in server.bodies] == [True, False, False, False, False], "asked with tools once"
    assert first.outcome["ending"] == "answered"


def test_a_clients_schema_that_is_refused_changes_nothing_for_others():
    refusal = HTTPFailure(400, "This model does not support tools")
    panel = {"name": "open_panel", "parameters": {"type": "object", "properties": {}}}
    with FakeOpenAI(refusal, ANSWER, ANSWER) as server:
        model = load_chat_model("openai:local", base_url=server.base_url, max_retries=0)
        agent = RagAgent(model=model, knowledge=CannedKnowledge())
        agent.ask(QUESTION, context={"client_tools": [panel]})
        agent.ask(QUESTION)
    assert ["tools" in body for body in server.bodies] == [True, False, True]


def test_a_schema_that_the_provider_refuses_is_no_refusal_of_tools():
    bad = HTTPFailure(400, "Invalid schema for function 'open_panel': 'x' is not valid under any of the given schemas")
    with FakeOpenAI(bad, bad) as server:
        model = load_chat_model("openai:local", base_url=server.base_url, max_retries=0)
        answer = RagAgent(model=model, knowledge=CannedKnowledge()).ask(QUESTION)
    assert (answer.outcome["ending"], len(server.bodies)) == ("model_error", 1)


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize(
    "said",
    [
        {"content": "Ten days.", "reasoning_content": "Let me think."},
        {"content": "<think>Let me think.</think>\n\nTen days."},
    ],
    ids=["a field", "tags"],
)
def test_thoughts_are_events_and_not_part_of_the_thread(said: dict[str, str], streaming: bool):
    with FakeOpenAI({"role": "assistant", **said}) as server:
        model = load_chat_model("openai:local", base_url=server.base_url, disable_streaming=not streaming)
        agent = RagAgent(model=model, knowledge=CannedKnowledge())
        events = list(agent.stream(QUESTION, thread="t"))
    if streaming:  # a reply that comes whole is not told in pieces
        assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == "Let me think."
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Ten days."
    assert agent.history("t")[-1].text == "Ten days."
    assert "Let me think." not in str(agent.history("t"))


UNOPENED = "Let me think.\n</think>\n\nTen days."


def streamed(agent: RagAgent) -> tuple[list[str], str, str]:
    """Texts of the deltas, together by message; the answer; and what its own deltas add up to."""
    texts: dict[str, str] = {}
    for event in agent.stream(QUESTION, thread="t"):
        if isinstance(event, TextDelta):
            texts[event.message_id] = texts.get(event.message_id, "") + event.text
        if isinstance(event, AnswerReady):
            answer = event
    assert "Let me think." not in str(agent.history("t"))
    assert agent.history("t")[-1].id == answer.message_id
    return list(texts.values()), answer.text, texts.get(answer.message_id, "")


def test_thoughts_that_begin_in_the_prompt_are_no_part_of_an_answer():
    with FakeOpenAI(UNOPENED, UNOPENED, "Twelve days.", "Twelve days.") as server:
        model = load_chat_model("openai:local", base_url=server.base_url)
        agent = RagAgent(model=model, knowledge=CannedKnowledge())
        first, second, third, fourth = (streamed(agent) for _ in range(4))
    assert first == ([UNOPENED], "Ten days.", ""), "nothing told that these are thoughts before they end"
    assert second == (["Ten days."], "Ten days.", "Ten days.")
    assert third == fourth == (["Twelve days."], "Twelve days.", "Twelve days."), "a template that no longer opens them"


@pytest.mark.parametrize("native", [True, False], ids=["native", "declared without tools"])
@pytest.mark.parametrize("thought", ["Let me think.", f"I might write {AS_TEXT['own']} here."], ids=["plain", "a call"])
def test_thoughts_of_any_chat_model_are_events_and_not_part_of_the_thread(thought: str, native: bool):
    """As of one that `langchain-ollama` or a library of the user's own makes: nothing has parted its text."""
    knowledge = CannedKnowledge()
    asked = f"<think>{thought}</think>\n\n{AS_TEXT['hermes']}"
    with ScriptedChatModel(asked, f"<think>{thought}</think>\n\n{ANSWER}") as model:
        model.profile = {"tool_calling": native}
        agent = RagAgent(model=model, knowledge=knowledge)
        events = list(agent.stream(QUESTION, thread="t"))
    assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == thought * 2
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == ANSWER
    assert [event.text for event in events if isinstance(event, AnswerReady)] == [ANSWER]
    assert knowledge.queries == ["sick leave"], "a call that is only thought of is none"
    assert thought not in str(agent.history("t"))


@pytest.mark.parametrize("native", [True, False], ids=["native", "declared without tools"])
def test_thoughts_of_any_chat_model_that_begin_in_the_prompt_are_no_part_of_its_answer(native: bool):
    with ScriptedChatModel(UNOPENED, UNOPENED) as model:
        model.profile = {"tool_calling": native}
        agent = RagAgent(model=model, knowledge=CannedKnowledge())
        assert streamed(agent) == ([UNOPENED], "Ten days.", "")
        assert agent.ask(QUESTION).text == "Ten days."


def test_a_tag_is_text_where_a_model_gives_its_thoughts_aside():
    said = "<think> is the tag that thoughts begin with."
    aside = AIMessage(said, additional_kwargs={"reasoning_content": "Let me think."})
    with ScriptedChatModel(aside) as model:
        assert streamed(RagAgent(model=model, knowledge=CannedKnowledge())) == ([said], said, said)


def test_thoughts_that_begin_in_the_prompt_stand_aside_in_a_reply_that_comes_whole():
    with FakeOpenAI(UNOPENED) as server:
        model = load_chat_model("openai:local", base_url=server.base_url, disable_streaming=True)
        reply = model.invoke(QUESTION)
    assert (reply.content, reply.additional_kwargs["reasoning_content"]) == ("Ten days.", "Let me think.\n")


def test_a_reply_that_breaks_off_among_its_thoughts_is_no_answer():
    with FakeOpenAI("<think>The user asks for", "Ten days.") as server:
        model = load_chat_model("openai:local", base_url=server.base_url)
        answer = RagAgent(model=model, knowledge=CannedKnowledge()).ask(QUESTION)
    assert answer.text == "Ten days."


def test_a_provider_that_takes_no_calls_without_tools_gets_them_as_text():
    def bedrock(messages: list[BaseMessage], tools: tuple[str, ...]) -> Any:
        if not tools and any(message.type == "tool" for message in messages):
            raise ValueError("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
        return call("knowledge_search", query=f"sick leave {len(messages)}") if tools else ANSWER

    with ScriptedChatModel(*[bedrock] * 5) as model:
        graph = build_rag_graph(model=model, knowledge=CannedKnowledge(lambda query: ["All about sick leave."]))
        outs = [graph.invoke(ASK, context=AgentContext(max_rounds=1)) for _ in range(2)]
    assert [(out["messages"][-1].text, out["outcome"]["ending"]) for out in outs] == [(ANSWER, "max_rounds")] * 2
    assert [request.tools for request in model.requests] == [("knowledge_search",), (), (), ("knowledge_search",), ()]
    assert "All about sick leave." in model.requests[2].messages[-1].text


def test_an_error_of_another_kind_is_not_tried_again_as_text():
    def broken(messages: list[BaseMessage], tools: tuple[str, ...]) -> Any:
        raise ValueError("the key is unknown")

    with ScriptedChatModel(call("knowledge_search", query="sick leave"), broken) as model:
        graph = build_rag_graph(model=model, knowledge=CannedKnowledge())
        out = graph.invoke(ASK, context=AgentContext(max_rounds=1))
    assert out["outcome"]["ending"] == "max_rounds"
    assert out["messages"][-1].text.startswith("No answer could be written")
    assert len(model.requests) == 2


def test_a_long_thread_is_shown_from_its_newest_whole_turns():
    seen: list[list[BaseMessage]] = []

    def play(messages: list[BaseMessage], tools: tuple[str, ...]) -> Any:
        seen.append(messages)
        return "word " * 100

    agent = RagAgent(model=ScriptedChatModel(*[play] * 30), knowledge=CannedKnowledge())
    context = {"max_history_tokens": 500}
    for number in range(10):
        agent.ask(f"question {number}", thread="t", context=context)
    last = seen[-1]
    assert [message.text for message in last if message.type == "human"] == [f"question {n}" for n in (6, 7, 8, 9)]
    assert last[1].type == "human", "turns are whole"
    assert "its earlier turns were left out" in last[0].text
    assert "left out" not in seen[0][0].text
    assert len(agent.history("t")) == 20, "the thread keeps all"


def test_without_any_history_only_the_question_is_shown():
    agent = RagAgent(model=(model := ScriptedChatModel("one", "two")), knowledge=CannedKnowledge())
    agent.ask("first", thread="t")
    agent.ask("second", thread="t", context={"max_history_tokens": 0})
    assert [message.text for message in model.requests[1].messages[1:]] == ["second"]


def test_the_native_protocol_stays_where_tools_are_taken():
    with ScriptedChatModel(call("knowledge_search", query="sick leave"), ANSWER) as model:
        build_rag_graph(model=model, knowledge=CannedKnowledge()).invoke(ASK)
    assert [request.tools for request in model.requests] == [("knowledge_search",)] * 2


def test_a_stream_that_is_cut_is_asked_for_once_more():
    begun = RawStream([delta(role="assistant", content="Ten ")], is_cut=True)
    with FakeOpenAI(begun, "Ten days.") as server:
        agent = RagAgent(model=load_chat_model("openai:local", base_url=server.base_url), knowledge=CannedKnowledge())
        answer = agent.ask(QUESTION)
    assert (answer.text, answer.outcome["ending"], len(server.bodies)) == ("Ten days.", "answered", 2)


def test_a_connection_that_breaks_twice_ends_the_turn_with_its_reason():
    with ScriptedChatModel(ConnectionError("reset"), ConnectionError("reset")) as model:
        out = build_rag_graph(model=model, knowledge=CannedKnowledge()).invoke(ASK)
    assert (out["outcome"]["ending"], out["outcome"]["reason"]) == (
        "model_error",
        "the model failed (ConnectionError)",
    )
