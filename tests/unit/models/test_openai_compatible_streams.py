"""Streamed replies: the same message as plain ChatOpenAI's, however the bytes are cut."""

import json
import time
from functools import reduce
from itertools import pairwise
from operator import add
from pathlib import Path
from typing import Any

import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_openai import ChatOpenAI

from graphrag_agent.models.factory import load_chat_model
from graphrag_agent.models.openai_compatible.event_stream import BrokenReplyError, EventStream
from graphrag_agent.models.openai_compatible.reply import Delta, Reply
from graphrag_agent.models.openai_compatible.tool_calls import read_calls
from tests.fake_openai import USAGE, FakeOpenAI, RawBody, RawStream, delta

RECORDED = Path(__file__).parents[4] / "shared" / "data" / "toolcalls" / "recorded_exchanges"


def recorded_streams() -> list[Any]:
    """Every chat-completions stream of the recorded exchanges."""
    if not RECORDED.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason="../shared/data is not there"))]
    rows = map(json.loads, (RECORDED / "index.jsonl").read_text().splitlines())
    files = [row["file"] for row in rows if "openai-chat" in row["apis"] and row["stream"]]
    files = [file for file in files if (RECORDED / file).exists()]  # not all of them may be handed on
    return [
        pytest.param(exchange, id=f"{Path(file).stem[:60]}-{place}")
        for file in files
        for place, exchange in enumerate(json.loads((RECORDED / file).read_text())["interactions"])
        if exchange.get("api") == "openai-chat" and exchange["response"].get("stream")
    ]


def read_all(pieces: list[bytes]) -> tuple[Delta, Any]:
    """The whole reply and its calls, from these pieces."""
    reply = Reply()
    for piece in pieces:
        reply.feed(piece)
    reply.finish()
    return reply.whole, (read_calls(reply.calls), reply.usage)


def told(message: AIMessage) -> dict[str, Any]:
    """What two models must agree on."""
    fields = ("content", "tool_calls", "invalid_tool_calls", "usage_metadata", "additional_kwargs", "response_metadata")
    return {name: getattr(message, name) for name in fields}


@pytest.mark.parametrize("exchange", recorded_streams())
async def test_recorded_streams_give_the_message_that_plain_chat_openai_gives(exchange):
    stream = RawStream([exchange["response"]["body"].encode()], is_done=False)
    with FakeOpenAI(lambda body: stream) as server:
        options = {"base_url": server.base_url, "max_retries": 0, "streaming": True, "stream_usage": True}
        plain = ChatOpenAI(model="m", api_key="k", use_responses_api=False, **options)
        ours = load_chat_model("openai:m", **options)
        expected = told(await plain.ainvoke("x"))
        reads = [await ours.ainvoke("x"), ours.invoke("x"), reduce(add, [c async for c in ours.astream("x")])]
        chunks = reduce(add, [c async for c in plain.astream("x")])
    names = {call["name"] for call in expected["tool_calls"]}
    if names == {"llm_versionllm_version"}:  # the server repeats the name, which plain ChatOpenAI adds up
        expected["tool_calls"] = [{**call, "name": "llm_version"} for call in expected["tool_calls"]]
    for read in reads:
        assert told(read) == expected
    if names != {"llm_versionllm_version"}:
        assert reads[-1].tool_call_chunks == [{**c, "args": c["args"] or ""} for c in chunks.tool_call_chunks]


@pytest.mark.parametrize("exchange", recorded_streams())
def test_recorded_streams_hold_the_calls_that_an_independent_reader_found(exchange):
    _, ((calls, invalid), _) = read_all([exchange["response"]["body"].encode()])
    expected = exchange["expected"]["tool_calls"]
    assert [(c["id"], c["name"], c["args"]) for c in calls] == [
        (c["id"], c["name"], c["arguments_json"] or {}) for c in expected
    ]
    assert invalid == []


def call_delta(index: int | None = 0, **fields: Any) -> dict[str, Any]:
    place = {} if index is None else {"index": index}
    id_ = {"id": fields.pop("id")} if "id" in fields else {}
    return {**place, **id_, "function": fields}


STREAM = [
    b": a heartbeat\r\n\r\n",
    delta(role="assistant", content=""),
    delta(reasoning_content="先想一想"),
    delta(content="Отпуск "),
    b"event: message\nid: 7\n",
    delta(content="длится 28 дней ☂"),
    delta(tool_calls=[call_delta(0, id="a", name="search", arguments="")]),
    delta(tool_calls=[call_delta(0, arguments='{"query": "病')]),
    b":\n\n",
    delta(tool_calls=[call_delta(0, arguments='假"}'), call_delta(1, id="b", name="search", arguments='{"q')]),
    delta(tool_calls=[call_delta(1, arguments='uery": "x"}')]),
    delta("tool_calls"),
    {"choices": [], "usage": USAGE},
]
LINE_ENDS = [b"\n", b"\r\n", b"\r"]


def as_bytes(events: list[Any], line_end: bytes, *, is_done: bool = True) -> bytes:
    parts = [e if isinstance(e, bytes) else b"data: " + json.dumps(e, ensure_ascii=False).encode() for e in events]
    end = [b"data: [DONE]"] if is_done else []
    return b"".join(part if part.endswith(b"\n") else part + line_end * 2 for part in [*parts, *end])


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(LINE_ENDS), st.booleans(), st.lists(st.integers(0, 3000), max_size=60))
def test_any_split_of_the_bytes_gives_the_same_reply(line_end, is_done, cuts):
    data = as_bytes(STREAM, line_end, is_done=is_done)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[start:end] for start, end in pairwise(places)]
    whole, read = read_all(pieces)
    assert (whole, read) == read_all([data])
    assert "".join(whole.content) == "Отпуск длится 28 дней ☂"
    assert [call["args"] for call in read[0][0]] == [{"query": "病假"}, {"query": "x"}]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 3000), max_size=40))
def test_the_deltas_of_any_split_add_up_to_the_whole(cuts):
    data = as_bytes(STREAM, b"\n")
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    reply = Reply()
    deltas = [reply.feed(data[start:end]) for start, end in pairwise(places)]
    told = [found for found in deltas if found is not None]
    assert "".join(text for found in told for text in found.content) == "".join(reply.whole.content)
    assert [piece for found in told for piece in found.pieces] == reply.whole.pieces
    assert [found.finish_reason for found in told if found.finish_reason] == ["tool_calls"]
    calls = [call for found in told for call in found.as_chunk()["choices"][0]["delta"]["tool_calls"]]
    assert {call["id"] for call in calls} - {None} == {"a", "b"}


@pytest.mark.parametrize("cut_at", range(0, 2400, 97))
def test_a_stream_cut_before_its_end_is_an_error_at_every_place(cut_at):
    data = as_bytes(STREAM[:-2], b"\n", is_done=False)
    with pytest.raises(BrokenReplyError, match="ended before"):
        read_all([data[:cut_at]])


def test_a_last_event_without_its_line_end_counts():
    data = as_bytes(STREAM, b"\n", is_done=False) + b"data: [DONE]"
    assert read_all([data]) == read_all([as_bytes(STREAM, b"\n")])


def test_events_without_blank_lines_between_them_count():
    data = as_bytes(STREAM, b"\n").replace(b"\n\n", b"\n")
    assert read_all([data]) == read_all([as_bytes(STREAM, b"\n")])


def test_an_event_may_be_spread_over_several_data_lines():
    lines = json.dumps(delta(content="hi"), indent=1).splitlines()
    events = EventStream()
    assert events.feed("".join(f"data: {line}\n" for line in lines).encode() + b"\n") == [delta(content="hi")]


def test_nothing_counts_after_the_end():
    assert EventStream().feed(b"data: [DONE]\n\ndata: {}\n\ndata: rubbish\n\n") == []


@pytest.mark.parametrize("data", [b"data: rubbish\n\n", b"data: 7\n\n", b'data: {"a": \n\n', b"data: [DONE\n\n"])
def test_an_event_that_is_no_json_object_is_an_error(data):
    with pytest.raises(BrokenReplyError, match="no JSON"):
        EventStream().feed(data)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"error": {"message": "overloaded", "code": 502}}, "overloaded"),
        ({"error": "overloaded"}, "overloaded"),
        ({"error": {"code": 7}}, "An error occurred during streaming"),
        ({"object": "error", "message": "overloaded", "code": 400}, "overloaded"),
    ],
)
def test_an_error_told_in_the_stream_is_raised(event, message):
    with pytest.raises(BrokenReplyError, match=message) as caught:
        read_all([as_bytes([*STREAM[:4], event], b"\n")])
    assert caught.value.body


def test_usage_that_counts_up_in_every_chunk_is_not_added_up():
    counting = [{**delta(content="a"), "usage": {"completion_tokens": n}} for n in range(3)]
    _, (_, usage) = read_all([as_bytes([*counting, delta("stop")], b"\n")])
    assert usage["usage"] == {"completion_tokens": 2}


def test_a_finish_reason_told_twice_is_told_once():
    whole, _ = read_all([as_bytes([delta("stop", content="a"), {**delta("stop"), "usage": USAGE}], b"\n")])
    assert (whole.finish_reason, whole.content) == ("stop", ["a"])


def test_chunks_of_plain_messages_are_of_langchains_own_class():
    with FakeOpenAI(lambda body: "hello there, you") as server:
        chunks = list(load_chat_model("openai:m", base_url=server.base_url).stream("x"))
    assert {type(chunk) for chunk in chunks} == {AIMessageChunk}


@pytest.mark.parametrize(("pause_seconds", "share"), [(0.0, 0.4), (0.002, 0.8)], ids=["at once", "one by one"])
async def test_a_streamed_token_costs_a_fraction_of_chat_openais_cpu(pause_seconds, share):
    events = [*(delta(content=f"word{n} ") for n in range(150)), delta("stop")]
    if not pause_seconds:
        events = [as_bytes(events, b"\n", is_done=False)]

    async def milliseconds(model: Any) -> float:
        await model.ainvoke("warm up")
        began = time.thread_time()
        for _ in range(2):
            await model.ainvoke("x")
        return 500 * (time.thread_time() - began)

    async with openai.DefaultAsyncHttpxClient(verify=False) as client:
        with FakeOpenAI(lambda body: RawStream(events, pause_seconds=pause_seconds)) as server:
            options = {"base_url": server.base_url, "api_key": "k", "streaming": True, "http_async_client": client}
            plain = await milliseconds(ChatOpenAI(model="m", use_responses_api=False, **options))
            ours = await milliseconds(load_chat_model("openai:m", **options))
    assert ours < share * plain, f"{ours:.1f} ms against {plain:.1f} ms"


async def texts_and_moments(merge_seconds: float) -> tuple[list[str], list[float]]:
    """The texts of a stream's chunks, and when each came, counted from the first."""
    events = [*(delta(content=f"{n} ") for n in range(20)), delta("stop")]
    with FakeOpenAI(lambda body: RawStream(events, pause_seconds=0.01)) as server:
        model = load_chat_model("openai:m", base_url=server.base_url, merge_seconds=merge_seconds)
        found = [(chunk.text, time.perf_counter()) async for chunk in model.astream("x") if chunk.text]
    return [text for text, _ in found], [moment - found[0][1] for _, moment in found]


async def test_text_is_passed_on_as_it_comes():
    texts, _ = await texts_and_moments(0.0)
    assert len(texts) > 15
    assert "".join(texts) == "".join(f"{n} " for n in range(20))


async def test_fast_text_may_be_merged_and_neither_its_start_nor_its_end_waits():
    texts, moments = await texts_and_moments(0.06)
    assert texts[0] == "0 ", "the first piece is passed on at once"
    assert 3 <= len(texts) <= 6
    assert "".join(texts) == "".join(f"{n} " for n in range(20))
    texts, moments = await texts_and_moments(30.0)
    assert (texts[0], texts[1]) == ("0 ", "".join(f"{n} " for n in range(1, 20)))
    assert moments[1] < 2, "the end of the body ends the wait"


@pytest.mark.parametrize(
    ("told", "tokens"),
    [
        ({"prompt_tokens": 3.0, "completion_tokens": 4.5, "total_tokens": 7.5}, (3, 4, 7)),
        ({"prompt_tokens": "3", "completion_tokens": "4", "total_tokens": "7"}, (3, 4, 7)),
        ({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, "completion_tokens_details": "x"}, (3, 4, 7)),
        ({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, "prompt_tokens_details": [1]}, (3, 4, 7)),
        ({"prompt_tokens": float("nan"), "completion_tokens": 4, "total_tokens": [7]}, (0, 4, 4)),
    ],
)
@pytest.mark.parametrize("streaming", [True, False])
def test_odd_counts_of_tokens_cost_no_answer(told: Any, tokens: Any, streaming: bool):
    whole = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Ten."}, "finish_reason": "stop"}]}
    streamed = RawStream([delta(content="Ten."), delta("stop"), {"choices": [], "usage": told}])
    with FakeOpenAI(streamed if streaming else RawBody(json.dumps({**whole, "usage": told}).encode())) as server:
        reply = load_chat_model("openai:local", base_url=server.base_url, max_retries=0, streaming=streaming).invoke(
            "q"
        )
    usage = reply.usage_metadata
    assert (reply.text, usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == ("Ten.", *tokens)


async def test_events_labelled_as_json_are_read_as_events():
    events = [delta(content="Ten days."), delta("stop")]
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    with FakeOpenAI(RawBody(body), RawBody(body)) as server:
        model = load_chat_model("openai:local", base_url=server.base_url, max_retries=0)
        assert model.invoke("q").text == "Ten days."
        assert (await model.ainvoke("q")).text == "Ten days."
