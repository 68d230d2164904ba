"""Every way a turn can end: with an answer, its reason, what it spent and what is missing."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import StructuredTool, tool

from graphrag_agent import AgentContext, Budget, RagAgent, ToolSpec, build_rag_graph
from graphrag_agent.citations import Evidence
from graphrag_agent.errors import ToolFailedError
from graphrag_agent.events import CUT_OFF, AnswerReady, ToolStart
from graphrag_agent.testing import ScriptedChatModel, call
from graphrag_agent.tools.evidence_message import render_evidence
from tests.canned import CannedKnowledge, id_of
from tests.pairing_rule import pairing_problems

ASK = {"messages": [{"role": "user", "content": "How long is sick leave?"}]}


def search(query: str, **more: Any) -> Any:
    return call("knowledge_search", query=query, **more)


def run(*steps: Any, knowledge: Any = None, tools: Any = (), context: Any = None, **build: Any) -> tuple[Any, Any]:
    with ScriptedChatModel(*steps) as model:
        graph = build_rag_graph(model=model, knowledge=knowledge or CannedKnowledge(), tools=tools, **build)
        out = graph.invoke(ASK, context=context)
    assert all(pairing_problems(request.messages) == [] for request in model.requests)
    assert out["messages"][-1].text.strip()
    return out, model


def test_searches_that_find_nothing_new_close_the_search():
    knowledge = CannedKnowledge(lambda query: ["The only passage."])
    out, model = run(search("a"), search("b"), search("c"), "What there is.", knowledge=knowledge)
    assert knowledge.queries == ["a", "b", "c"]
    assert out["outcome"]["ending"] == "no_new_evidence"
    assert model.requests[2].tools == ("knowledge_search",)
    assert model.requests[3].tools == ()
    assert "The last 2 rounds of searches found nothing new" in model.requests[3].messages[-1].text


def test_other_tools_stay_open_when_the_search_is_closed():
    @tool
    def clock(zone: str) -> str:
        """Tell the time."""
        return f"noon in {zone}"

    script = (search("a"), search("A"), search(" a"), call("clock", zone="utc"), "Noon.")
    out, model = run(*script, tools=[clock])
    assert model.requests[3].tools == ("clock",)
    assert (out["outcome"]["ending"], out["messages"][-1].text) == ("no_new_evidence", "Noon.")


def test_a_model_that_searches_on_though_it_was_told_is_stopped():
    def stubborn(messages: list[BaseMessage], tools: tuple[str, ...]) -> Any:
        return search(f"other words {len(messages)}")

    knowledge = CannedKnowledge(lambda query: [])
    out, _ = run(*[stubborn] * 3, "Nothing was found.", knowledge=knowledge, budget=Budget(max_rounds=50))
    assert len(knowledge.queries) == 2
    assert out["outcome"]["ending"] == "no_new_evidence"
    assert out["outcome"]["calls"]["refused"] == 1
    assert out["outcome"]["gaps"] == knowledge.queries


def test_two_searches_that_alternate_forever_run_once_each():
    knowledge = CannedKnowledge()
    out, _ = run(search("a"), search("b"), search("a"), search("b"), "Both.", knowledge=knowledge)
    assert knowledge.queries == ["a", "b"]
    assert out["outcome"]["ending"] == "no_new_evidence"


def test_the_stall_limit_can_be_set():
    knowledge = CannedKnowledge(lambda query: [])
    out, _ = run(search("a"), "Nothing.", knowledge=knowledge, budget=Budget(stall_limit=1))
    assert out["outcome"]["ending"] == "no_new_evidence"


def test_failed_searches_are_no_sign_that_nothing_is_left():
    class Down(CannedKnowledge):
        async def asearch(self, query: str, **_: Any) -> Any:
            self.queries.append(query)
            raise ToolFailedError("the index is being rebuilt")

    knowledge = Down()
    out, _ = run(search("a"), search("b"), search("c"), "No luck.", knowledge=knowledge)
    assert knowledge.queries == ["a", "b", "c"]
    assert out["outcome"]["ending"] == "answered"


def test_a_call_that_failed_for_a_moment_is_tried_again_by_itself():
    class Flaky(CannedKnowledge):
        async def asearch(self, query: str, **more: Any) -> Any:
            if len(self.queries) == 0:
                self.queries.append(query)
                raise ConnectionError("reset")
            return await super().asearch(query, **more)

    knowledge = Flaky()
    _, model = run(search("a"), "Found.", knowledge=knowledge)
    assert knowledge.queries == ["a", "a"]
    assert "All about a." in model.requests[1].messages[-1].text


def test_a_call_with_side_effects_is_never_tried_again_by_itself():
    sent = []

    @tool
    def send(text: str) -> str:
        """Send."""
        sent.append(text)
        raise ConnectionError("reset")

    run(call("send", text="hi"), "Failed.", tools=[send])
    assert sent == ["hi"]


@pytest.mark.parametrize(
    ("metadata", "is_cut_off"),
    [
        ({"finish_reason": "length"}, True),
        ({"stop_reason": "max_tokens"}, True),
        ({"stopReason": "max_tokens"}, True),
        ({"done_reason": "length"}, True),
        ({"finish_reason": "MAX_TOKENS"}, True),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, True),
        ({"finish_reason": "stop", "incomplete_details": None}, False),
        ({"finish_reason": 7, "stop_reason": ""}, False),
        ({}, False),
    ],
)
def test_an_answer_that_the_limit_of_tokens_cut_off_says_so(metadata: dict[str, Any], is_cut_off: bool):
    out, _ = run(AIMessage("Ten days, but only if", response_metadata=metadata))
    assert (out["outcome"]["ending"], out["messages"][-1].text) == ("answered", "Ten days, but only if")
    assert (CUT_OFF in out["outcome"]["warnings"]) is is_cut_off


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (AIMessage("", additional_kwargs={"refusal": "I can't help with that."}), "I can't help with that."),
        (AIMessage("", response_metadata={"finish_reason": "content_filter"}), "declined to answer this question"),
        (AIMessage("No.", response_metadata={"stop_reason": "refusal"}), "No."),
        (AIMessage("", response_metadata={"finish_reason": "PROHIBITED_CONTENT"}), "declined to answer this question"),
        (AIMessage("", response_metadata={"stopReason": "guardrail_intervened"}), "declined to answer this question"),
    ],
)
def test_a_refusal_is_an_ending_of_its_own_and_says_so(refusal: AIMessage, told: str):
    out, _ = run(search("a"), refusal)
    assert out["outcome"]["ending"] == "refused"
    assert out["outcome"]["reason"] == "the model declined to answer"
    assert told in out["messages"][-1].text


@pytest.mark.parametrize(
    ("question", "locale", "told"),
    [
        ("How long is the leave?", None, "No answer could be written: the model failed (RuntimeError). These passages"),
        ("病假有多少天？", None, "未能写出回答（the model failed (RuntimeError)）。找到了以下段落："),
        ("Сколько длится отпуск?", None, "Ответ написать не удалось"),
        ("How long is the leave?", "zh-Hans", "未能写出回答"),
        ("病假有多少天？", "de-AT", "No answer could be written"),
    ],
)
def test_what_the_loop_says_itself_is_in_the_readers_language(question: str, locale: str | None, told: str):
    model = ScriptedChatModel(RuntimeError("away"))
    graph = build_rag_graph(model=model, knowledge=CannedKnowledge())
    out = graph.invoke({"messages": [("user", question)]}, context={"locale": locale})
    assert out["messages"][-1].text.startswith(told)


FAILED = "No answer could be written: the model failed (RuntimeError)."


def test_a_model_that_fails_at_once_leaves_what_a_search_for_the_question_finds():
    knowledge = CannedKnowledge()
    out, _ = run(RuntimeError("away"), knowledge=knowledge)
    assert knowledge.queries == ["How long is sick leave?"]
    passage = "All about How long is sick leave?."
    assert out["messages"][-1].text == f"{FAILED} These passages were found:\n- {passage} [{id_of(passage)}]"
    assert out["outcome"]["citations"] == [id_of(passage)]
    assert (out["outcome"]["ending"], out["outcome"]["calls"]["run"]) == ("model_error", 1)


def test_where_that_search_finds_nothing_it_is_a_gap():
    out, _ = run(RuntimeError("away"), knowledge=CannedKnowledge(lambda query: []))
    assert out["messages"][-1].text == f"{FAILED} Nothing was found in the documents."
    assert out["outcome"]["gaps"] == ["How long is sick leave?"]


def test_where_that_search_fails_nothing_is_said_of_the_documents():
    def broken(query: str) -> list[str]:
        raise RuntimeError("the disk is gone")

    out, _ = run(RuntimeError("away"), knowledge=CannedKnowledge(broken))
    assert (out["messages"][-1].text, out["outcome"]["gaps"]) == (FAILED, [])


def test_a_model_that_fails_after_a_search_leaves_what_that_one_found():
    knowledge = CannedKnowledge()
    out, _ = run(search("a"), RuntimeError("away"), knowledge=knowledge)
    assert knowledge.queries == ["a"]
    assert "All about a." in out["messages"][-1].text
    nothing = CannedKnowledge(lambda query: [])
    out, _ = run(search("a"), RuntimeError("away"), knowledge=nothing)
    assert (nothing.queries, out["outcome"]["gaps"]) == (["a"], ["a"])


def test_a_search_that_never_ran_is_made_up_for():
    knowledge = CannedKnowledge()
    run(search(""), RuntimeError("away"), knowledge=knowledge)
    assert knowledge.queries == ["How long is sick leave?"]


def test_what_other_tools_found_is_enough():
    passage_ = render_evidence([Evidence("k3f2a", "c", "d", "Leave", "s.md", None, "", 1.0, 0, 9, "Ten days.")])
    reader = StructuredTool.from_function(
        lambda name: passage_, name="reader", description="Read.", response_format="content_and_artifact"
    )
    knowledge = CannedKnowledge()
    out, _ = run(call("reader", name="a"), RuntimeError("away"), knowledge=knowledge, tools=[reader])
    assert knowledge.queries == []
    assert "- Ten days. [k3f2a]" in out["messages"][-1].text


@pytest.mark.parametrize(
    ("context", "budget"),
    [
        ({"retrieval": "none"}, {}),
        ({"tools": []}, {}),
        ({"tools": ["clock"]}, {}),
        ({}, {"max_family_calls": {"search": 0}}),
    ],
)
def test_a_turn_that_may_not_search_does_not_because_the_model_fails(context: Any, budget: Any):
    @tool
    def clock(zone: str) -> str:
        """Tell the time."""
        return zone

    knowledge = CannedKnowledge()
    script = (RuntimeError("away"),)
    out, _ = run(*script, knowledge=knowledge, tools=[clock], context=context, budget=Budget(**budget))
    assert (out["messages"][-1].text, knowledge.queries) == (FAILED, [])


def test_the_last_tool_call_of_a_turn_is_not_exceeded_for_it():
    knowledge = CannedKnowledge()
    budget = Budget(max_tool_calls=1)
    steps = [call("clock", zone="utc"), AIMessage("")]
    clock_ = ToolSpec(StructuredTool.from_function(lambda zone: zone, name="clock", description="Tell the time."))
    out, _ = run(*steps, knowledge=knowledge, tools=[clock_], budget=budget)
    assert (knowledge.queries, out["outcome"]["calls"]["run"]) == ([], 1)


def test_what_the_turn_has_shown_before_takes_no_room_from_that_search():
    @tool
    def dump(part: str) -> str:
        """Read a lot."""
        return f"{part} words " * 20_000

    out, _ = run([call("dump", part="a"), call("dump", part="b")], RuntimeError("away"), tools=[dump])
    assert "All about How long is sick leave?." in out["messages"][-1].text
    assert out["outcome"]["gaps"] == []


def test_what_was_found_and_had_no_room_is_no_gap():
    knowledge = CannedKnowledge(lambda query: [f"{query} {n} " + "word " * 100 for n in range(5)])
    steps = [search(f"leave {n}") for n in range(4)]
    out, model = run(steps, "Done.", knowledge=knowledge, context=AgentContext(max_evidence_tokens=600))
    assert "5 of 5 passages were left out" in model.requests[1].messages[-1].text
    assert out["outcome"]["gaps"] == []


def test_a_search_of_the_client_is_not_made_for_it():
    theirs = {"name": "knowledge_search", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}
    for retrieval in ("auto", "one_shot"):
        agent = RagAgent(model=ScriptedChatModel(RuntimeError("away")))
        answer = agent.ask("How long is sick leave?", context={"client_tools": [theirs], "retrieval": retrieval})
        assert (answer.text, answer.trace, answer.outcome["calls"]["run"]) == (FAILED, (), 0)


def test_two_searches_of_the_loop_in_one_turn_are_two_calls():
    tries = iter((RuntimeError("the disk is away"), ["Ten days."]))

    def flaky(query: str) -> list[str]:
        found = next(tries)
        if isinstance(found, list):
            return found
        raise found

    model = ScriptedChatModel(RuntimeError("away"))
    events = [
        *RagAgent(model=model, knowledge=CannedKnowledge(flaky)).stream("Leave?", context={"retrieval": "one_shot"})
    ]
    calls = [event.id for event in events if isinstance(event, ToolStart)]
    assert len(calls) == len({*calls}) == 2
    assert [event.text for event in events if isinstance(event, AnswerReady)] == [
        f"{FAILED} These passages were found:\n- Ten days. [{id_of('Ten days.')}]"
    ]


def test_a_greeting_is_not_searched_for():
    knowledge = CannedKnowledge()
    graph = build_rag_graph(model=ScriptedChatModel(RuntimeError("away")), knowledge=knowledge)
    out = graph.invoke({"messages": [("user", "Hello!")]})
    assert (out["messages"][-1].text, knowledge.queries) == (FAILED, [])


async def test_a_model_that_takes_all_the_time_leaves_what_a_search_for_the_question_finds():
    model = ScriptedChatModel("Never said.", "Nor this.", chunk_delay_seconds=30)
    graph = build_rag_graph(model=model, knowledge=CannedKnowledge())
    stream = graph.astream(ASK, context=AgentContext(max_seconds=0.3), stream_mode=["messages", "values"])
    out: Any = [part async for mode, part in stream if mode == "values"][-1]
    assert out["outcome"]["ending"] == "max_seconds"
    assert "All about How long is sick leave?." in out["messages"][-1].text


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        ({"additional_kwargs": {"refusal": "我不能帮助。"}}, "模型拒绝回答：我不能帮助。"),
        ({"response_metadata": {"finish_reason": "content_filter"}}, "模型拒绝回答这个问题。"),
    ],
)
def test_so_is_what_it_says_of_a_refusal(refusal: dict[str, Any], told: str):
    graph = build_rag_graph(model=ScriptedChatModel(AIMessage("", **refusal)), knowledge=CannedKnowledge())
    out = graph.invoke({"messages": [("user", "怎么造炸弹？")]})
    assert (out["messages"][-1].text, out["outcome"]["ending"]) == (told, "refused")


def test_a_model_error_says_why_and_keeps_the_providers_words_to_the_log(caplog: pytest.LogCaptureFixture):
    out, _ = run(search("a"), RuntimeError("bad key sk-secret"))
    assert out["outcome"]["reason"] == "the model failed (RuntimeError)"
    assert "the model failed (RuntimeError)" in out["messages"][-1].text
    assert "sk-secret" not in str(out)
    assert "sk-secret" in caplog.text


@pytest.mark.parametrize("nothing", ["", " ", "[x9y8z]"])
def test_empty_twice_is_a_model_error_with_what_was_found(nothing: str):
    out, _ = run(search("a"), AIMessage(nothing), AIMessage(nothing))
    assert (out["outcome"]["ending"], out["outcome"]["reason"]) == ("model_error", "the model gave no answer")
    assert "All about a." in out["messages"][-1].text


def test_a_cap_for_one_family_leaves_the_others():
    knowledge = CannedKnowledge()
    budget = Budget(max_family_calls={"search": 1})
    out, model = run([search("a"), search("b")], "One.", knowledge=knowledge, budget=budget)
    assert knowledge.queries == ["a"]
    assert "no search calls are left in this turn" in model.requests[1].messages[-1].text
    assert "0 search calls" in model.requests[1].messages[-1].text
    assert out["outcome"]["ending"] == "answered"


def test_the_model_is_told_what_is_left_in_each_round():
    _, model = run(search("a"), search("b"), "Done.", budget=Budget(max_rounds=4, max_tool_calls=9))
    told = [request.messages[-1].text.rpartition("\n\n")[2] for request in model.requests[1:]]
    assert "Left in this turn: 3 rounds, 8 tool calls," in told[0]
    assert "Left in this turn: 2 rounds, 7 tool calls," in told[1]
    assert "Left in this turn" not in model.requests[2].messages[-3].text, "only the newest result says so"


def test_passages_beyond_the_token_budget_are_left_out_whole():
    knowledge = CannedKnowledge(lambda query: [f"{query} {n} " + "word " * 100 for n in range(5)])
    context = AgentContext(max_evidence_tokens=600)
    out, model = run(search("a"), search("b"), search("c"), "Done.", knowledge=knowledge, context=context)
    first, second = model.requests[1].messages[-1].text, model.requests[2].messages[-1].text
    assert first.count("<evidence") == 1
    assert "4 of 5 passages were left out" in first
    assert second.count("<evidence") == 1
    assert model.requests[3].tools == (), "nothing more fits, so searching is closed"
    assert out["outcome"]["ending"] == "answered"


def test_a_huge_result_is_cut_and_says_so():
    @tool
    def dump(table: str) -> str:
        """Dump."""
        return "x" * 5_000_000

    _, model = run(call("dump", table="t"), "Done.", tools=[dump])
    text = model.requests[1].messages[-1].text
    assert len(text) < 60_000
    assert "of 5000000 characters were left out" in text


def test_a_tool_that_returns_none_has_a_result():
    @tool
    def nothing(x: str) -> None:
        """Do nothing."""

    _, model = run(call("nothing", x="1"), "Done.", tools=[ToolSpec(nothing)])
    assert model.requests[1].messages[-1].text.startswith("null\n")


def test_forty_calls_in_one_message_run_as_far_as_the_budget_goes():
    knowledge = CannedKnowledge()
    out, _ = run([search(f"q{n}") for n in range(40)], "Done.", knowledge=knowledge)
    assert len(knowledge.queries) == 20
    assert out["outcome"]["calls"] == {"run": 20, "reused": 0, "refused": 20}
    assert out["outcome"]["ending"] == "max_calls"


def test_a_megabyte_of_arguments_is_refused_and_not_sent_back():
    out, model = run(search("x" * 1_000_000), "Done.")
    assert out["outcome"]["calls"]["refused"] == 1
    prompt = model.requests[1].messages
    assert sum(len(str(message)) for message in prompt) < 20_000
    assert "characters, at most 20000 are taken" in prompt[-1].text


@pytest.mark.parametrize("name", ["functions.knowledge_search", "default_api.knowledge_search"])
def test_a_prefix_before_a_tools_name_is_dropped(name: str):
    knowledge = CannedKnowledge()
    run(call(name, query="a"), "Done.", knowledge=knowledge)
    assert knowledge.queries == ["a"]


def test_a_wrapper_around_several_calls_is_opened():
    uses = [{"recipient_name": "functions.knowledge_search", "parameters": {"query": q}} for q in ("a", "b")]
    knowledge = CannedKnowledge()
    out, _ = run(call("multi_tool_use.parallel", tool_uses=uses), "Done.", knowledge=knowledge)
    assert sorted(knowledge.queries) == ["a", "b"]
    assert out["outcome"]["calls"] == {"run": 2, "reused": 0, "refused": 0}


def test_a_tool_that_does_not_exist_ten_times_still_ends_in_an_answer():
    out, _ = run(*[call("nope")] * 6, "I can't.")
    assert out["outcome"]["ending"] == "max_rounds"
    assert out["outcome"]["calls"] == {"run": 0, "reused": 0, "refused": 6}


def test_what_the_model_thinks_is_not_stored():
    thought = AIMessage([{"type": "thinking", "thinking": "hmm"}, {"type": "text", "text": "Ten days."}])
    out, _ = run(search("a"), thought)
    assert out["messages"][-1].content == "Ten days."


def test_a_model_that_never_searches_is_answered_and_the_outcome_shows_it():
    out, model = run("Sick leave lasts ten days, I think [k3f2a].")
    assert model.requests[0].tools == ("knowledge_search",)
    assert out["messages"][-1].text == "Sick leave lasts ten days, I think."
    assert out["outcome"]["ending"] == "answered"
    assert out["outcome"]["calls"] == {"run": 0, "reused": 0, "refused": 0}
    assert out["outcome"]["citations"] == []
