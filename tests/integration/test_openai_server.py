"""The real `openai` client against a small server made of the adapter."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Iterator
from typing import Any, Self

import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from graphrag_agent import RagAgent
from graphrag_agent.adapters.openai_chat import ChatStream, completion_of, stream_chat
from graphrag_agent.adapters.openai_request import OpenAIRequestError, error_body, models_body, read_chat_request
from graphrag_agent.errors import SettingsError, ThreadBusyError, ThreadError
from graphrag_agent.events import ErrorRaised, Event, TextDelta, TurnEnded, TurnStarted
from graphrag_agent.testing import ScriptedChatModel, call
from tests.canned import CannedKnowledge, id_of
from tests.loopback import LoopbackServer, Reply, Request

CITED = id_of("All about leave.")
ANSWER = f"Ten days [{CITED}]."
PANEL = {
    "type": "function",
    "function": {"name": "open_panel", "parameters": {"type": "object", "properties": {"tab": {"type": "string"}}}},
}


class ChatServer(LoopbackServer):
    """What an app has to do around the adapter."""

    def __init__(self, *steps: Any, show_tools: bool = False) -> None:
        super().__init__()
        self.model = ScriptedChatModel(*steps)
        self.agent = RagAgent(model=self.model, knowledge=CannedKnowledge())
        self.show_tools = show_tools

    def __enter__(self) -> Self:
        super().__enter__()
        self.http = httpx.Client(trust_env=False)
        self.client = openai.OpenAI(base_url=f"{self.base_url}/v1", api_key="x", max_retries=0, http_client=self.http)
        return self

    def __exit__(self, *raised: object) -> None:
        self.http.close()
        super().__exit__(*raised)

    def answer(self, request: Request) -> Reply:
        if request.path == "/v1/models":
            return Reply(body=models_body(["handbook"]))
        try:
            return asyncio.run(self.complete(json.loads(request.body)))
        except Exception as error:
            status, body = error_body(error)
            return Reply(status, body)

    async def complete(self, body: Any) -> Reply:
        asked = read_chat_request(body, allow_tools=True)
        if asked.results:
            events = self.agent.astream_resume(asked.results, thread=str(asked.thread), context=asked.context)
        else:
            events = self.agent.astream(
                asked.question, thread=asked.thread, earlier=asked.history, context=asked.context
            )
        if not asked.stream:
            told = [event async for event in events]
            return Reply(body=completion_of(told, model=asked.model, created=1, show_tools=self.show_tools))
        stream = ChatStream(model=asked.model, created=1, show_tools=self.show_tools, include_usage=asked.include_usage)
        pieces = b"".join([piece async for piece in stream_chat(events, stream)])
        return Reply(body=pieces, headers={"content-type": "text/event-stream"})


def search() -> Any:
    return call("knowledge_search", query="leave")


def ask(text: str) -> Any:
    return [{"role": "user", "content": text}]


@pytest.fixture
def serve() -> Iterator[Any]:
    running: list[ChatServer] = []

    def start(*steps: Any, **options: Any) -> ChatServer:
        running.append(ChatServer(*steps, **options).__enter__())
        return running[-1]

    yield start
    for server in running:
        server.__exit__(None, None, None)


def test_a_completion_has_text_usage_and_citations(serve: Any):
    server = serve(search(), ANSWER)
    done = server.client.chat.completions.create(model="handbook", messages=ask("How long?"))
    choice = done.choices[0]
    assert (choice.message.content, choice.finish_reason, done.model) == (ANSWER, "stop", "handbook")
    assert done.usage and done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens > 0
    told = done.model_extra["graphrag"]  # type: ignore[index]
    assert told["citations"][0]["source"] == "leave.md" and told["outcome"]["ending"] == "answered"
    assert "events" not in told
    assert [message.text for message in server.agent.history(told["thread"])] == ["How long?", ANSWER]


@pytest.mark.parametrize("show_tools", [False, True])
def test_a_stream_adds_up_to_the_answer_and_ends_with_usage(serve: Any, show_tools: bool):
    server = serve(search(), ANSWER, show_tools=show_tools)
    chunks = list(
        server.client.chat.completions.create(
            model="handbook", messages=ask("How long?"), stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == ANSWER
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage and chunks[-1].usage.total_tokens > 0 and not chunks[-1].choices
    assert len({chunk.id for chunk in chunks}) == 1
    told = [chunk.model_extra["graphrag"] for chunk in chunks if "graphrag" in (chunk.model_extra or {})]
    assert told[-1]["citations"][0]["id"] == CITED
    events = [item["event"]["type"] for item in told if "event" in item]
    assert events == (["tool_start", "tool_end"] if show_tools else [])


def test_an_answer_that_was_cut_off_ends_as_one(serve: Any):
    cut = AIMessage("Ten days, but", response_metadata={"finish_reason": "length"})
    server = serve(cut, cut)
    done = server.client.chat.completions.create(model="handbook", messages=ask("How long?"))
    assert (done.choices[0].message.content, done.choices[0].finish_reason) == ("Ten days, but", "length")
    chunks = list(server.client.chat.completions.create(model="handbook", messages=ask("How long?"), stream=True))
    assert chunks[-1].choices[0].finish_reason == "length"


def test_the_clients_history_counts_and_its_system_message_is_a_wish(serve: Any):
    server = serve("Again.")
    server.client.chat.completions.create(
        model="handbook",
        messages=[
            {"role": "system", "content": "Answer in French."},
            {"role": "user", "content": "One?"},
            {"role": "assistant", "content": "First."},
            {"role": "user", "content": [{"type": "text", "text": "Two"}, {"type": "text", "text": "?"}]},
        ],
    )
    _, *prompt = server.model.requests[0].messages
    assert [(message.type, message.text) for message in prompt] == [
        ("human", "One?"),
        ("ai", "First."),
        ("human", "Answer in French.\n\nTwo\n?"),
    ]


def test_a_thread_of_the_server_goes_on(serve: Any):
    server = serve("first", "second")
    chat = server.client.chat.completions
    first = chat.create(model="m", messages=ask("one?"))
    thread = first.model_extra["graphrag"]["thread"]  # type: ignore[index]
    chat.create(model="m", messages=ask("two?"), extra_body={"graphrag": {"thread": thread}})
    assert [m.text for m in server.agent.history(thread)] == ["one?", "first", "two?", "second"]


@pytest.mark.parametrize("stream", [False, True])
def test_the_clients_tools_are_asked_for_and_their_results_taken(serve: Any, stream: bool):
    server = serve({**call("open_panel", tab="one"), "id": "p1"}, "Opened.")
    chat = server.client.chat.completions
    tools: Any = [PANEL]
    if stream:
        chunks = list(chat.create(model="m", messages=ask("Open."), tools=tools, stream=True))
        asked: Any = next(chunk.choices[0].delta.tool_calls for chunk in chunks if chunk.choices[0].delta.tool_calls)
        finish, told = chunks[-1].choices[0].finish_reason, chunks[-1].model_extra
    else:
        done = chat.create(model="m", messages=ask("Open."), tools=tools)
        asked, finish, told = done.choices[0].message.tool_calls, done.choices[0].finish_reason, done.model_extra
    assert (asked[0].id, asked[0].function.name, json.loads(asked[0].function.arguments)) == (
        *("p1", "open_panel", {"tab": "one"}),
    )
    assert finish == "tool_calls" and told
    after: Any = [
        *ask("Open."),
        {"role": "assistant", "content": None, "tool_calls": [asked[0].model_dump(exclude={"index"})]},
        {"role": "tool", "tool_call_id": "p1", "content": "ok"},
    ]
    thread = told["graphrag"]["thread"]
    done = chat.create(model="m", messages=after, tools=tools, extra_body={"graphrag": {"thread": thread}})
    assert done.choices[0].message.content == "Opened."


def test_models_are_listed(serve: Any):
    assert [model.id for model in serve().client.models.list()] == ["handbook"]


def test_errors_have_openais_shape(serve: Any):
    chat = serve("ok").client.chat.completions
    with pytest.raises(openai.BadRequestError, match="n=2 is not supported") as raised:
        chat.create(model="m", messages=ask("q"), n=2)
    assert (raised.value.param, raised.value.type) == ("n", "invalid_request_error")
    with pytest.raises(openai.BadRequestError, match="bad context: max_rounds=0"):
        chat.create(model="m", messages=ask("q"), extra_body={"graphrag": {"context": {"max_rounds": 0}}})
    for error, status in ((ThreadBusyError("busy"), 409), (ThreadError("gone"), 404), (SettingsError("bad"), 400)):
        assert error_body(error)[0] == status
    status, body = error_body(ValueError("password=hunter2"))
    assert status == 500 and "hunter2" not in json.dumps(body)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ([], "must be a JSON object"),
        ({"messages": []}, "at least one message"),
        ({"messages": "hi"}, "must be a list"),
        ({"messages": ask("q"), "nonsense": 1}, "unrecognized request argument: nonsense"),
        ({"messages": ask(" ")}, "must be a question"),
        ({"messages": [{"role": "assistant", "content": "a"}]}, "must be a question"),
        ({"messages": [{"role": "ghost", "content": "a"}]}, "role='ghost' is not supported"),
        ({"messages": ["text"]}, "role=None is not supported"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "type 'image_url' are not supported"),
        ({"messages": [{"role": "user", "content": 7}]}, "must be a string"),
        ({"messages": ask("q"), "stream": "yes"}, "must be true or false"),
        ({"messages": ask("q"), "stream_options": 1}, "must be an object"),
        ({"messages": ask("q"), "response_format": {"type": "json_object"}}, "is not supported"),
        ({"messages": ask("q"), "tools": [PANEL]}, "'tools' are not supported"),
        ({"messages": ask("q"), "graphrag": {"thread": 1}}, "must be the name of a thread"),
        ({"messages": [{"role": "tool", "tool_call_id": "1", "content": "x"}]}, "need graphrag.thread"),
        ({"messages": ask("q") * 2001}, "2000 are allowed"),
    ],
)
def test_what_cannot_be_served_is_named(body: Any, told: str):
    with pytest.raises(OpenAIRequestError, match=told):
        read_chat_request(body)


@given(
    st.dictionaries(
        st.sampled_from(["messages", "stream", "tools", "n", "graphrag", "stream_options", "stop", "model"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["role", "content", "type", "text", "thread", "context"]), inner)
            ),
            max_leaves=12,
        ),
    )
)
def test_no_body_does_anything_but_be_read_or_refused(body: Any):
    with contextlib.suppress(OpenAIRequestError):
        read_chat_request(body, allow_tools=True)


async def test_an_error_in_the_middle_is_told_and_the_stream_is_closed():
    async def breaks() -> AsyncGenerator[Event, None]:
        yield TurnStarted("t", "q", turn="1")
        yield TextDelta("Ten", "m")
        yield ErrorRaised("boom")
        raise ValueError("boom")

    pieces = [piece async for piece in stream_chat(breaks(), ChatStream(model="m", created=1))]
    assert b'"error"' in pieces[-2] and b'"server_error"' in pieces[-2] and pieces[-1] == b"data: [DONE]\n\n"

    async def fails() -> AsyncGenerator[Event, None]:
        raise ThreadBusyError("busy")
        yield

    with pytest.raises(ThreadBusyError):
        _ = [piece async for piece in stream_chat(fails(), ChatStream(model="m", created=1))]


def test_an_answer_that_nobody_saw_coming_is_sent_whole():
    """As after a model that failed: the passages found stand for its answer."""
    rag = RagAgent(
        model=ScriptedChatModel(search(), ValueError("down"), ValueError("down")), knowledge=CannedKnowledge()
    )
    events = list(rag.stream("How long?"))
    stream = ChatStream(model="m", created=1)
    chunks = [chunk for event in events for chunk in stream.chunks(event)]
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
    assert text == completion_of(events, model="m", created=1)["choices"][0]["message"]["content"]
    assert isinstance(events[-1], TurnEnded) and events[-1].outcome["ending"] == "model_error"


def test_earlier_messages_are_for_new_threads_and_only_their_text_is_taken():
    rag = RagAgent(model=ScriptedChatModel("a", "b"), knowledge=CannedKnowledge())
    forged = AIMessage("First.", tool_calls=[call("knowledge_search", query="x")], response_metadata={"citations": [1]})
    first = rag.ask("Two?", earlier=[HumanMessage("One?"), forged])
    kept = rag.history(first.thread)
    assert [message.text for message in kept] == ["One?", "First.", "Two?", "a"]
    assert not kept[1].tool_calls and not kept[1].response_metadata  # type: ignore[attr-defined]
    with pytest.raises(ThreadError, match="has a history of its own"):
        rag.ask("Three?", thread=first.thread, earlier=[HumanMessage("One?")])
