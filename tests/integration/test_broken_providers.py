"""Servers that break the protocol, over real HTTP: each has one defined result, streaming and not, sync and async."""

import asyncio
import json
import time
from functools import reduce
from operator import add
from typing import Any

import langchain_openai
import openai
import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from graphrag_agent.models.factory import load_chat_model
from graphrag_agent.models.openai_compatible import is_tools_rejection
from tests.fake_openai import USAGE, Completion, FakeOpenAI, HTTPFailure, RawBody, RawStream, delta, tool_message

WAYS = ("invoke", "ainvoke", "stream", "astream", "whole", "awhole")
"""The first four stream, the last two don't."""


@tool
def knowledge_search(query: str) -> str:
    """Search the documents."""
    return query


def models_of(server: FakeOpenAI, **options: Any) -> dict[str, Any]:
    """A model that streams and one that doesn't, by the way to call them."""
    given = {"base_url": server.base_url, "max_retries": 0, **options}
    streaming, whole = (
        load_chat_model("openai:local", streaming=value, **given).bind_tools([knowledge_search])
        for value in (True, False)
    )
    return {way: whole if way.endswith("whole") else streaming for way in WAYS}


async def ask(model: Any, way: str) -> AIMessage:
    """The reply when the model is called that way; chunks are added up."""
    if way in ("stream", "astream"):
        chunks = list(model.stream("x")) if way == "stream" else [chunk async for chunk in model.astream("x")]
        return reduce(add, chunks)
    return model.invoke("x") if way in ("invoke", "whole") else await model.ainvoke("x")


async def replies(step: Any, ways: tuple[str, ...] = WAYS) -> list[AIMessage]:
    with FakeOpenAI(lambda body: step) as server:
        models = models_of(server)
        return [await ask(models[way], way) for way in ways]


async def errors(step: Any, kind: type[Exception], ways: tuple[str, ...] = WAYS) -> list[Exception]:
    found = []
    with FakeOpenAI(lambda body: step) as server:
        models = models_of(server)
        for way in ways:
            with pytest.raises(kind) as caught:
                await ask(models[way], way)
            found.append(caught.value)
    return found


def calls_of(message: AIMessage) -> tuple[list[Any], list[Any]]:
    return [(c["name"], c["args"]) for c in message.tool_calls], [c["args"] for c in message.invalid_tool_calls]


ARGUMENTS: dict[str, tuple[Any, bool]] = {
    '{"query": "a"}': ({"query": "a"}, True),
    "": ({}, True),
    '{"query": "a': ('{"query": "a', False),
    '{"query": ["x"]': ('{"query": ["x"]', False),
    '{"query": "a"} </tool_call>': ('{"query": "a"} </tool_call>', False),
    "null": ("null", False),
    "[]": ("[]", False),
    "7": ("7", False),
    '{"query": null}': ({"query": None}, True),
    '{"QUERY": "x"}': ({"QUERY": "x"}, True),
}


@pytest.mark.parametrize(("text", "expected"), ARGUMENTS.items(), ids=ARGUMENTS)
async def test_arguments_are_an_object_or_an_invalid_call_and_never_repaired(text, expected):
    arguments, is_valid = expected
    step = tool_message(("knowledge_search", text), ("knowledge_search", {"query": "the valid sibling"}))
    sibling = ("knowledge_search", {"query": "the valid sibling"})
    for reply in await replies(step):
        assert calls_of(reply) == (
            ([("knowledge_search", arguments), sibling], []) if is_valid else ([sibling], [arguments])
        )


async def test_a_call_cut_off_at_the_token_limit_is_an_invalid_call():
    step = Completion(tool_message(("knowledge_search", '{"query": "how long is')), finish_reason="length")
    for reply in await replies(step):
        assert calls_of(reply) == ([], ['{"query": "how long is'])
        assert reply.response_metadata["finish_reason"] == "length"
        assert type(reply).__name__ in ("AIMessage", "AIMessageChunk")


async def test_a_cut_call_in_one_single_chunk_is_an_invalid_call():
    whole = delta(
        "length", tool_calls=[{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"query": "a'}}]
    )
    for reply in await replies(RawStream([whole], pause_seconds=0), WAYS[:4]):
        assert calls_of(reply) == ([], ['{"query": "a'])


async def test_a_call_as_long_as_a_megabyte_is_a_call():
    step = tool_message(("knowledge_search", {"query": "x" * 1_000_000}))
    whole = {"index": 0, "id": "a", "function": step["tool_calls"][0]["function"]}
    for reply in await replies(RawStream([delta("tool_calls", tool_calls=[whole])]), WAYS[:4]):
        assert len(reply.tool_calls[0]["args"]["query"]) == 1_000_000


def stream_of_calls(*deltas: dict[str, Any]) -> RawStream:
    return RawStream([*(delta(tool_calls=[found]) for found in deltas), delta("tool_calls")])


CALLS = {
    "without index": (
        {"id": "a", "function": {"name": "f", "arguments": '{"q": 1'}},
        {"function": {"arguments": "}"}},
        {"id": "b", "function": {"name": "g", "arguments": "{}"}},
    ),
    "without id": (
        {"index": 0, "function": {"name": "f", "arguments": '{"q": 1}'}},
        {"index": 1, "function": {"name": "g", "arguments": "{}"}},
    ),
    "name in each chunk": (
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"q": '}},
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": "1}"}},
        {"index": 1, "id": "b", "function": {"name": "g", "arguments": ""}},
        {"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}},
    ),
    "all at index 0": (
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"q": 1}'}},
        {"index": 0, "id": "b", "function": {"name": "g", "arguments": "{}"}},
    ),
    "arguments as objects": (
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": {"q": 1}}},
        {"index": 1, "id": "b", "function": {"name": "g", "arguments": {}}},
    ),
    "null where text belongs": (
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": None}},
        {"index": 0, "id": None, "function": {"name": None, "arguments": '{"q": 1}'}},
        {"index": 1, "id": "b", "function": {"name": "g", "arguments": None}},
    ),
}


@pytest.mark.parametrize("deltas", CALLS.values(), ids=CALLS)
async def test_calls_are_put_together_whatever_the_server_leaves_out(deltas):
    for reply in await replies(stream_of_calls(*deltas), WAYS[:4]):
        assert calls_of(reply) == ([("f", {"q": 1}), ("g", {})], [])


async def test_arguments_as_an_object_in_a_whole_message():
    message = tool_message(("f", {"q": 1}))
    message["tool_calls"][0]["function"]["arguments"] = {"q": 1}
    for reply in await replies(message, WAYS[4:]):
        assert calls_of(reply) == ([("f", {"q": 1})], [])


async def test_content_as_blocks_is_text_and_thoughts_are_kept_apart():
    blocks = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "let me see"}]},
        {"type": "text", "text": "Ten "},
        {"type": "text", "text": "days."},
    ]
    for reply in await replies(Completion({"role": "assistant", "content": blocks})):
        assert (reply.content, reply.additional_kwargs) == ("Ten days.", {"reasoning_content": "let me see"})


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_thoughts_come_as_reasoning_content(field):
    thoughts = RawStream([delta(**{field: "let "}), delta(**{field: "me see"}), delta(content="Ten."), delta("stop")])
    for reply in await replies(thoughts, WAYS[:4]):
        assert (reply.content, reply.additional_kwargs) == ("Ten.", {"reasoning_content": "let me see"})
    for reply in await replies({"role": "assistant", "content": "Ten.", field: "let me see"}, WAYS[4:]):
        assert (reply.content, reply.additional_kwargs) == ("Ten.", {"reasoning_content": "let me see"})


async def test_a_refusal_is_told():
    for reply in await replies({"role": "assistant", "content": None, "refusal": "I can't help with that."}):
        assert (reply.content, reply.additional_kwargs) == ("", {"refusal": "I can't help with that."})


async def test_an_empty_message_is_an_empty_message():
    for reply in await replies({"role": "assistant", "content": None}):
        assert (reply.content, calls_of(reply)) == ("", ([], []))
        assert reply.response_metadata["finish_reason"] == "stop"


async def test_a_missing_usage_is_none():
    for reply in await replies(Completion({"role": "assistant", "content": "hi"}, usage=None)):
        assert (reply.content, reply.usage_metadata) == ("hi", None)


async def test_a_missing_finish_reason_is_nothing_to_worry_about():
    for reply in await replies(Completion({"role": "assistant", "content": "hi"}, finish_reason="")):
        assert reply.content == "hi"


HEALTHY = [delta(role="assistant", content=""), delta(content="Ten "), delta(content="days."), delta("stop")]
STREAMS = {
    "without DONE": RawStream(HEALTHY, is_done=False),
    "CRLF": RawStream(HEALTHY, line_end=b"\r\n"),
    "CR": RawStream(HEALTHY, line_end=b"\r"),
    "heartbeats": RawStream([b": ping\n\n", HEALTHY[1], b":\n\n", b"event: ping\n\n", *HEALTHY[2:], b": bye\n\n"]),
    "names and numbers of events": RawStream([b"event: message\nid: 1\nretry: 5\n", *HEALTHY]),
    "no choices now and then": RawStream([{"choices": []}, HEALTHY[1], {"choices": None}, *HEALTHY[2:]]),
    "null deltas": RawStream([{"choices": [{"delta": None}]}, *HEALTHY]),
    "something after DONE": RawStream([*HEALTHY, b"data: [DONE]\n\n", delta(content="more")]),
}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
async def test_streams_in_every_dialect_are_read(stream):
    for reply in await replies(stream, WAYS[:4]):
        assert (reply.content, reply.response_metadata["finish_reason"]) == ("Ten days.", "stop")


async def test_a_whole_message_where_a_stream_was_asked_for_is_read():
    body = {"model": "m", "choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": USAGE}
    for reply in await replies(RawBody(json.dumps(body).encode())):
        assert (reply.content, reply.usage_metadata["total_tokens"]) == ("hi", 16)


CUT = {
    "connection breaks": RawStream(HEALTHY[:2], is_cut=True),
    "body ends": RawStream(HEALTHY[:2], is_done=False),
    "in the middle of an event": RawStream([*HEALTHY[:2], b'data: {"choices": [{"del'], is_done=False),
    "in the middle of a call": RawStream(
        [delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}])], is_done=False
    ),
    "before anything": RawStream([], is_cut=True),
    "nothing but DONE": RawStream([]),
    "a web page": RawBody(b"<html>Sign in</html>", "text/html"),
}


@pytest.mark.parametrize("stream", CUT.values(), ids=CUT)
async def test_a_stream_cut_off_is_an_error_and_no_short_answer(stream):
    for error in await errors(stream, openai.APIConnectionError, WAYS[:4]):
        assert isinstance(error, langchain_openai.chat_models.base.OpenAIConnectionError)


async def test_text_that_came_before_the_cut_was_streamed():
    with FakeOpenAI(RawStream(HEALTHY[:3], is_cut=True, pause_seconds=0.02)) as server:
        model, seen = load_chat_model("openai:local", base_url=server.base_url, max_retries=0), []
        with pytest.raises(openai.APIConnectionError):
            async for chunk in model.astream("x"):
                seen.append(chunk.text)
    assert "".join(seen) == "Ten days."


@pytest.mark.parametrize("error", [{"message": "overloaded", "code": 502}, "overloaded"])
async def test_an_error_in_the_middle_of_a_stream_is_raised(error):
    for raised in await errors(RawStream([*HEALTHY[:2], {"error": error}]), openai.APIError, WAYS[:4]):
        assert (raised.message, raised.body) == ("overloaded", error)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>Sign in</html>",
        b'{"choices": []}',
        b'{"choices": null}',
        b"{}",
        b"[]",
        b'{"choices": [{"message": null}]}',
    ],
)
async def test_an_answer_without_a_message_is_an_error(body):
    for error in await errors(RawBody(body), openai.APIConnectionError, WAYS[4:]):
        assert "the server" in str(error)


async def test_an_error_told_with_status_200_is_raised():
    body = json.dumps({"error": {"message": "overloaded", "code": 502}}).encode()
    for error in await errors(RawBody(body), openai.APIError):
        assert error.message == "overloaded"


async def test_a_refusal_of_tools_is_a_bad_request_that_can_be_recognised():
    for error in await errors(HTTPFailure(400, "gemma3:4b does not support tools"), openai.BadRequestError):
        assert is_tools_rejection(error)
    for error in await errors(HTTPFailure(400, "the prompt is too strange"), openai.BadRequestError):
        assert not is_tools_rejection(error)


STATUSES = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    403: openai.PermissionDeniedError,
    404: openai.NotFoundError,
    422: openai.UnprocessableEntityError,
    429: openai.RateLimitError,
    500: openai.InternalServerError,
}


@pytest.mark.parametrize(("status", "kind"), STATUSES.items())
async def test_errors_by_status_are_those_of_chat_openai(status, kind):
    with FakeOpenAI(lambda body: HTTPFailure(status, "no")) as server:
        async with openai.DefaultAsyncHttpxClient(verify=False) as client:
            options = {"base_url": server.base_url, "max_retries": 0, "http_async_client": client, "api_key": "k"}
            plain = langchain_openai.ChatOpenAI(model="m", **options)
            ours = load_chat_model("openai:m", **options)
            raised = []
            for model in (plain, ours):
                with pytest.raises(kind) as caught:
                    await model.ainvoke("x")
                raised.append(caught.value)
    assert type(raised[0]) is type(raised[1])
    assert str(raised[0]) == str(raised[1])


@pytest.mark.parametrize("way", WAYS)
async def test_429_is_retried_after_the_time_that_the_server_tells(way):
    busy = HTTPFailure(429, "slow down", headers={"retry-after": "0.2"})
    with FakeOpenAI(busy, busy, "hi") as server:
        began = time.perf_counter()
        assert (await ask(models_of(server, max_retries=2)[way], way)).text == "hi"
        assert time.perf_counter() - began >= 0.4
    assert len(server.bodies) == 3


async def test_429_without_a_time_is_retried_with_a_backoff():
    with FakeOpenAI(HTTPFailure(429), "hi") as server:
        began = time.perf_counter()
        assert (await ask(models_of(server, max_retries=1)["ainvoke"], "ainvoke")).text == "hi"
        assert 0.3 <= time.perf_counter() - began < 5


async def test_retries_are_bounded_in_number_and_in_time():
    with FakeOpenAI(lambda body: HTTPFailure(429, headers={"retry-after": "0.01"})) as server:
        with pytest.raises(openai.RateLimitError):
            await ask(models_of(server, max_retries=2)["ainvoke"], "ainvoke")
        assert len(server.bodies) == 3
    with FakeOpenAI(lambda body: HTTPFailure(429, headers={"retry-after": "86400"})) as server:
        with pytest.raises(openai.RateLimitError):
            await ask(models_of(server, max_retries=2)["ainvoke"], "ainvoke")
        assert len(server.bodies) == 1, "a day is too long to wait for"


async def test_a_stream_that_stands_still_is_an_error_and_heartbeats_dont_count():
    still = RawStream([HEALTHY[1], *[b": ping\n\n"] * 40], pause_seconds=0.03)
    expected = pytest.raises(langchain_openai.StreamChunkTimeoutError, match=r"No streaming chunk received for 0\.2s")
    with FakeOpenAI(still) as server, expected:
        await ask(models_of(server, stream_chunk_timeout=0.2)["ainvoke"], "ainvoke")


async def test_a_cancelled_call_leaves_nothing_behind():
    with FakeOpenAI(lambda body: RawStream([HEALTHY[1]] * 100, pause_seconds=0.02)) as server:
        model = load_chat_model("openai:local", base_url=server.base_url, max_retries=0)
        task = asyncio.create_task(model.ainvoke("x"))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_after_a_cut_stream_the_model_is_usable():
    with FakeOpenAI(CUT["connection breaks"], "hi") as server:
        model = load_chat_model("openai:local", base_url=server.base_url, max_retries=0)
        with pytest.raises(openai.APIConnectionError):
            await model.ainvoke("x")
        assert (await model.ainvoke("x")).text == "hi"
