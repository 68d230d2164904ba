"""Chat models in a composition of LangChain's: with fallbacks, with retries, with options bound to them."""

from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableLambda

from graphrag_agent import RagAgent, build_rag_graph
from graphrag_agent.errors import SettingsError
from graphrag_agent.events import AnswerReady, TextDelta, ToolStart
from graphrag_agent.models.asking import AskedModel
from graphrag_agent.models.composed import smallest_window, takes_tools, with_each
from graphrag_agent.models.factory import load_chat_model
from graphrag_agent.testing import ScriptedChatModel, call
from tests.canned import CannedKnowledge, id_of
from tests.fake_openai import FakeOpenAI, HTTPFailure

QUESTION = "How long is sick leave?"
ASKED = call("knowledge_search", query="sick leave")
AS_TEXT = '<tool_call name="knowledge_search">{"query": "sick leave"}</tool_call>'
ANSWER = f"Ten days [{id_of('All about sick leave.')}]."
DOWN = ConnectionRefusedError("down")


def down(messages: list[BaseMessage], tools: tuple[str, ...]) -> Any:
    raise DOWN


def streamed(agent: RagAgent) -> tuple[str, list[str]]:
    """The deltas of the answer together, and the tools that were started."""
    events = list(agent.stream(QUESTION))
    [answer] = [event for event in events if isinstance(event, AnswerReady)]
    deltas = [e.text for e in events if isinstance(e, TextDelta) and e.message_id == answer.message_id]
    assert "".join(deltas) == answer.text
    return answer.text, [event.name for event in events if isinstance(event, ToolStart)]


def test_a_fallback_has_the_tools_too_and_is_streamed() -> None:
    first, second = ScriptedChatModel(down, down), ScriptedChatModel(ASKED, ANSWER)
    agent = RagAgent(model=first.with_fallbacks([second]), knowledge=CannedKnowledge())
    assert streamed(agent) == (ANSWER, ["knowledge_search"])
    for model in (first, second):
        assert [request.tools for request in model.requests] == [("knowledge_search",)] * 2


def test_a_fallback_that_stands_in_a_fallback_is_reached() -> None:
    inner = ScriptedChatModel(down, down).with_fallbacks([ScriptedChatModel(ASKED, ANSWER).bind(stop=["\n\n\n"])])
    agent = RagAgent(model=ScriptedChatModel(down, down).with_fallbacks([inner]), knowledge=CannedKnowledge())
    assert agent.ask(QUESTION).text == ANSWER


def test_the_offline_model_answers_where_a_server_does_not() -> None:
    nobody = load_chat_model("openai:local", base_url="http://127.0.0.1:9/v1", api_key="none", max_retries=0)
    knowledge = CannedKnowledge(lambda query: ["Sick leave lasts ten days a year."])
    answer = RagAgent(model=nobody.with_fallbacks([load_chat_model("offline")]), knowledge=knowledge).ask(QUESTION)
    assert "Sick leave lasts ten days a year." in answer.text
    assert (answer.outcome["ending"], len(answer.citations)) == ("answered", 1)


def test_a_reply_that_fails_is_asked_for_again_by_the_compositions_own_rule() -> None:
    with FakeOpenAI(HTTPFailure(500, "busy"), "Ten days.") as server:
        model = load_chat_model("openai:local", base_url=server.base_url, max_retries=0)
        again = model.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
        assert streamed(RagAgent(model=again, knowledge=CannedKnowledge()))[0] == "Ten days."
    assert [len(body["tools"]) for body in server.bodies] == [1, 1]


def test_options_that_are_bound_to_a_model_go_with_every_request() -> None:
    with FakeOpenAI("Ten days.") as server:
        model = load_chat_model("openai:local", base_url=server.base_url).bind(seed=7).with_config(tags=["mine"])
        build_rag_graph(model=model, knowledge=CannedKnowledge()).invoke({"messages": [("user", QUESTION)]})
    assert (server.bodies[0]["seed"], len(server.bodies[0]["tools"])) == (7, 1)


class BreaksOff(ScriptedChatModel):
    """Its reply is cut after all but its last chunk."""

    def _stream(self, *args: Any, **kwargs: Any) -> Any:
        *chunks, _last = super()._stream(*args, **kwargs)
        yield from chunks
        raise DOWN

    async def _astream(self, *args: Any, **kwargs: Any) -> Any:
        for chunk in self._stream(*args, **kwargs):
            yield chunk


def test_a_call_that_began_before_its_model_failed_is_one_call() -> None:
    knowledge = CannedKnowledge()
    first, second = BreaksOff([ASKED], down), ScriptedChatModel(ASKED, ANSWER)
    agent = RagAgent(model=first.with_fallbacks([second]), knowledge=knowledge)
    *_, ended = agent.stream(QUESTION)
    assert ended.outcome["calls"] == {"run": 1, "reused": 0, "refused": 0}
    assert set(knowledge.queries) == {"sick leave"}
    assert len(second.requests) == 2


def test_a_text_that_broke_off_is_no_part_of_the_answer() -> None:
    first, second = BreaksOff("Nine and a hal"), ScriptedChatModel("Ten days.")
    assert streamed(RagAgent(model=first.with_fallbacks([second]), knowledge=CannedKnowledge())) == ("Ten days.", [])


def test_calls_are_text_for_all_where_one_takes_no_tools() -> None:
    first, second = ScriptedChatModel(down, AS_TEXT), ScriptedChatModel(AS_TEXT, down)
    second.profile = {"tool_calling": False}
    third = ScriptedChatModel(ANSWER)
    model = first.with_fallbacks([second, third])
    assert not takes_tools(model)
    answer = RagAgent(model=model, knowledge=CannedKnowledge()).ask(QUESTION)
    assert (answer.text, answer.outcome["calls"]) == (ANSWER, {"run": 1, "reused": 1, "refused": 0})
    assert {request.tools for one in (first, second, third) for request in one.requests} == {()}


def test_a_prompt_fits_the_smallest_window() -> None:
    large, small, unknown = (ScriptedChatModel("x") for _ in range(3))
    large.profile, small.profile = {"max_input_tokens": 100_000}, {"max_input_tokens": 4_000}
    assert smallest_window(unknown.with_fallbacks([large.with_retry(), small])) == 4_000
    assert smallest_window(unknown) is None


async def test_a_model_that_is_asked_by_the_way_may_be_a_composition() -> None:
    model = ScriptedChatModel(down).with_fallbacks([ScriptedChatModel("It rains.")])
    assert (await AskedModel(model).ask("Be short.", "?", name="weather")).text == "It rains."


def test_the_composition_that_was_given_stays_as_it_is() -> None:
    given = ScriptedChatModel("a").with_fallbacks([ScriptedChatModel("b").with_retry()])
    before = repr(given)
    changed = with_each(given, lambda model: model.bind(stop=["x"]))
    assert repr(given) == before != repr(changed)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (RunnableLambda(lambda messages: "x"), "a RunnableLambda is no chat model; give a LangChain chat model"),
        (ScriptedChatModel, "the class ScriptedChatModel is no chat model"),
        (object(), "a object is no chat model"),
        (ScriptedChatModel("x") | RunnableLambda(str), "a RunnableSequence is no chat model"),
        (ScriptedChatModel("x").with_fallbacks([RunnableLambda(str)]), "a RunnableLambda is no chat model"),
        (ScriptedChatModel("x").bind(tools=[{}]), "tools are bound to it already; .* give yours as tools="),
        (ScriptedChatModel("x").bind(functions=[]).with_retry(), "functions are bound to it already"),
    ],
)
def test_what_is_no_chat_model_is_refused_by_name(given: Any, told: str) -> None:
    with pytest.raises(SettingsError, match=f"^model: {told}"):
        RagAgent(model=given, knowledge=CannedKnowledge())
    with pytest.raises(SettingsError, match=f"^model: {told}"):
        build_rag_graph(model=given, knowledge=CannedKnowledge())


def test_a_model_without_tools_is_still_one() -> None:
    model = FakeListChatModel(responses=["Ten days."]).with_retry()
    assert RagAgent(model=model, knowledge=CannedKnowledge()).ask(QUESTION).text == "Ten days."


def test_a_model_that_is_chosen_at_each_call_is_one() -> None:
    langchain = pytest.importorskip("langchain.chat_models")
    with FakeOpenAI("Ten days.") as server:
        model = langchain.init_chat_model(
            configurable_fields=("model",), model="openai:first", api_key="none", base_url=server.base_url
        )
        graph = build_rag_graph(model=model, knowledge=CannedKnowledge())
        out = graph.invoke({"messages": [("user", QUESTION)]}, {"configurable": {"model": "openai:second"}})
    assert (out["messages"][-1].text, server.bodies[0]["model"]) == ("Ten days.", "second")
    assert len(server.bodies[0]["tools"]) == 1
