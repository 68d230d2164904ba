import asyncio
import gc
import socket

import openai
import pytest
from langchain_core.tools import tool
from openai import BadRequestError

from graphrag_agent.models.factory import load_chat_model
from graphrag_agent.sync_edge import run_sync
from tests.fake_openai import FakeOpenAI, HTTPFailure, tool_message


@tool
def knowledge_search(query: str) -> str:
    """Search the documents."""
    return query


@pytest.fixture
def server():
    with FakeOpenAI(lambda body: "hello there") as server:
        yield server


@pytest.fixture
def model(server):
    return load_chat_model("openai:local", base_url=server.base_url, max_retries=0)


def test_requests_stay_on_chat_completions_and_send_only_what_is_known_everywhere(server, model):
    assert model.bind_tools([knowledge_search]).invoke("x").text == "hello there"
    assert server.paths == ["/v1/chat/completions"]
    assert set(server.bodies[0]) == {"model", "messages", "tools", "stream", "stream_options"}
    assert server.headers[0]["authorization"] == "Bearer none"


def test_one_model_serves_one_event_loop_after_another(server, model):
    async def ask():
        return [reply.text for reply in await asyncio.gather(model.ainvoke("a"), model.ainvoke("b"))]

    for _ in range(3):
        assert asyncio.run(ask()) == ["hello there"] * 2
    assert run_sync(ask()) == ["hello there"] * 2
    assert asyncio.run(ask()) == ["hello there"] * 2
    assert model.invoke("x").text == "hello there"
    gc.collect()  # a connection left open would warn, and warnings are errors


async def test_two_event_loops_at_the_same_time(server, model):
    def in_another_loop():
        return asyncio.run(model.ainvoke("a"))

    here, there = await asyncio.gather(model.ainvoke("b"), asyncio.to_thread(in_another_loop))
    assert (here.text, there.text) == ("hello there", "hello there")


async def test_a_connection_is_used_again_inside_a_loop(server, model):
    for _ in range(3):
        await model.ainvoke("a")
    assert len(server.connections) == 1


async def test_stopping_a_stream_early_leaves_the_model_usable(model):
    async for _ in model.astream("a"):
        break
    assert (await model.ainvoke("b")).text == "hello there"


def test_an_explicit_proxy_is_used(monkeypatch, server):
    monkeypatch.setenv("OPENAI_PROXY", server.base_url.removesuffix("/v1"))
    model = load_chat_model("openai:local", base_url="http://model.invalid/v1", max_retries=0)
    assert model.invoke("x").text == asyncio.run(model.ainvoke("x")).text == "hello there"
    assert server.paths == ["http://model.invalid/v1/chat/completions"] * 2


async def test_broken_arguments_and_server_errors_reach_the_caller():
    steps = (
        tool_message(("knowledge_search", '{"query": '), ("knowledge_search", "[1]")),
        HTTPFailure(400, "too long"),
    )
    with FakeOpenAI(*steps) as server:
        model = load_chat_model("openai:local", base_url=server.base_url, max_retries=0)
        reply = await model.bind_tools([knowledge_search]).ainvoke("x")
        assert [call["args"] for call in reply.invalid_tool_calls] == ['{"query": ', "[1]"]
        assert reply.tool_calls == []
        with pytest.raises(BadRequestError, match="too long"):
            await model.ainvoke("x")


async def test_a_refused_connection_is_no_timeout():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model = load_chat_model("openai:local", base_url=f"http://127.0.0.1:{port}/v1", max_retries=0)
    with pytest.raises(openai.APIConnectionError) as caught:
        await model.ainvoke("?")
    assert not isinstance(caught.value, openai.APITimeoutError)
    chain = [caught.value]
    while (cause := chain[-1].__cause__) is not None:
        chain.append(cause)
    (refused,) = [error for error in chain if type(error).__name__ == "ConnectError"]
    assert str(port) in str(refused)


async def test_a_server_that_does_not_answer_is_a_timeout():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with pytest.raises(openai.APITimeoutError):
            await load_chat_model("openai:local", base_url=url, max_retries=0, timeout=0.2).ainvoke("?")


async def test_an_sdk_without_aiohttp_uses_its_own_transport(server, model, monkeypatch):
    def missing(**settings):
        raise RuntimeError("To use the aiohttp client you must have installed the package with the `aiohttp` extra")

    monkeypatch.setattr(openai, "DefaultAioHttpClient", missing)
    assert (await model.ainvoke("hi")).text == "hello there"
