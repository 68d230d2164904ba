"""Requests: what plain ChatOpenAI sends, for a fraction of the CPU."""

import logging
import time
from typing import Any

import openai
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from graphrag_agent.models.factory import load_chat_model
from graphrag_agent.models.openai_compatible.chat import chat_model_class
from graphrag_agent.models.openai_compatible.library import HOOKS, missing_hooks
from tests.fake_openai import FakeOpenAI

IMAGE = "data:image/png;base64,iVBORw0KGgo="
CALL = {"name": "knowledge_search", "args": {"query": "病假", "top_k": 3}, "id": "c1"}
BAD_CALL = {"name": "knowledge_search", "args": '{"query": "a', "id": "c2", "error": "cut", "type": "invalid_tool_call"}
USAGE = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}

MESSAGES: dict[str, list[Any]] = {
    "text": [HumanMessage("Привет ☂")],
    "tuples and dicts": [("system", "s"), {"role": "user", "content": "u"}, ("ai", "a"), ("human", "h")],
    "system": [SystemMessage("s"), HumanMessage("u")],
    "system as blocks": [SystemMessage([{"type": "text", "text": "s"}]), HumanMessage("u")],
    "developer": [SystemMessage("s", additional_kwargs={"__openai_role__": "developer"}), HumanMessage("u")],
    "other role": [ChatMessage(role="critic", content="c")],
    "names": [HumanMessage("u", name="ann"), AIMessage("a", name="bot"), HumanMessage("v", name="bo")],
    "text blocks": [HumanMessage([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])],
    "image by url": [HumanMessage([{"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}}])],
    "image block": [
        HumanMessage([{"type": "image", "source_type": "base64", "mime_type": "image/png", "data": "aGk="}])
    ],
    "image of v1": [HumanMessage(content_blocks=[{"type": "image", "base64": "aGk=", "mime_type": "image/png"}])],
    "audio": [HumanMessage([{"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}])],
    "file": [HumanMessage([{"type": "file", "file": {"file_id": "f1"}}, "and text"])],
    "calls": [HumanMessage("u"), AIMessage("", tool_calls=[CALL]), ToolMessage("r", tool_call_id="c1")],
    "calls with text": [HumanMessage("u"), AIMessage("I look", tool_calls=[CALL], usage_metadata=USAGE)],
    "calls that are none": [AIMessage("", tool_calls=[CALL], invalid_tool_calls=[BAD_CALL])],
    "calls in the provider's form": [
        AIMessage("", additional_kwargs={"tool_calls": [{"id": "c", "type": "function", "function": {"name": "n"}}]})
    ],
    "tool result as blocks": [ToolMessage([{"type": "text", "text": "r"}], tool_call_id="c1", name="knowledge_search")],
    "tool result with artifact": [ToolMessage("r", tool_call_id="c1", artifact={"hits": [1]}, status="error")],
    "function": [FunctionMessage("r", name="f")],
    "answer as blocks": [AIMessage([{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "no"}])],
    "answer with thoughts": [AIMessage("a", additional_kwargs={"reasoning_content": "t"}, response_metadata={"x": 1})],
    "answer of v1": [
        AIMessage([{"type": "text", "text": "a", "annotations": []}], response_metadata={"output_version": "v1"})
    ],
    "audio answer": [AIMessage("", additional_kwargs={"audio": {"id": "a1", "data": "..."}})],
    "nothing": [HumanMessage("")],
}


@tool
def knowledge_search(query: str, top_k: int = 5, source_type: str | None = None, ids: list[str] | None = None) -> str:
    """Search the documents."""
    return query


SCHEMA = {"title": "lookup", "description": "Look up.", "type": "object", "properties": {"key": {"type": "string"}}}
CUSTOM = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}, "x": [1]}}
TOOLS: dict[str, dict[str, Any]] = {
    "tool": {"tools": [knowledge_search]},
    "several": {"tools": [knowledge_search, SCHEMA, CUSTOM]},
    "strict": {"tools": [knowledge_search], "strict": True},
    "choice by name": {"tools": [knowledge_search], "tool_choice": "knowledge_search"},
    "any": {"tools": [knowledge_search], "tool_choice": "any"},
    "none": {"tools": [knowledge_search], "tool_choice": "none"},
    "serial": {"tools": [knowledge_search], "parallel_tool_calls": False},
}

OPTIONS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "sampling": {"temperature": 0.2, "top_p": 0.5, "seed": 7, "presence_penalty": 0.1, "frequency_penalty": 0.2},
    "limits": {"max_tokens": 50, "stop": ["\n\n", "END"]},
    "reasoning": {"reasoning_effort": "low", "verbosity": "low", "service_tier": "flex", "store": False},
    "bias": {"logit_bias": {"50256": -100}, "n": 1},
    "model kwargs": {"model_kwargs": {"user": "u1", "prompt_cache_key": "p"}},
    "extra body": {"extra_body": {"top_k": 20, "chat_template_kwargs": {"enable_thinking": False}}},
    "extra body beats messages": {"extra_body": {"messages": [{"role": "user", "content": "mine"}]}},
    "headers": {"default_headers": {"x-team": "t"}, "default_query": {"api-version": "1"}},
    "left to the library": {"logprobs": True, "top_logprobs": 2},
    "without usage": {"stream_usage": False},
}

SENT_HEADERS = (
    "authorization",
    "content-type",
    "accept",
    "x-team",
    "user-agent",
    "x-stainless-read-timeout",
)


@pytest.fixture(scope="module")
def server():
    with FakeOpenAI(lambda body: "ok") as server:
        yield server


async def requests_of(server: FakeOpenAI, model_class: Any, call: Any, **options: Any) -> list[Any]:
    """What the four ways to call a model send, streaming and not."""
    start = len(server.bodies)
    for streaming in (True, False):
        given = {"streaming": streaming, "stream_usage": True, "use_responses_api": False, **options}
        model = model_class(model="o1-m", base_url=server.base_url, api_key="secret", max_retries=0, **given)
        await call(model)
    headers = [{name: sent.get(name) for name in SENT_HEADERS} for sent in server.headers[start:]]
    return list(zip(server.bodies[start:], server.paths[start:], headers, strict=True))


async def assert_same_requests(server: FakeOpenAI, call: Any, **options: Any) -> None:
    # the clients are given so that they end with the event loop, and load no certificates
    with openai.DefaultHttpxClient(verify=False) as http_client:
        async with openai.DefaultAsyncHttpxClient(verify=False) as http_async_client:
            given = {"http_client": http_client, "http_async_client": http_async_client, **options}
            plain = await requests_of(server, ChatOpenAI, call, **given)
            ours = await requests_of(server, our_model, call, **given)
    assert ours == plain
    assert len(ours) >= 2


def our_model(*, model: str, **options: Any) -> BaseChatModel:
    return load_chat_model(f"openai:{model}", **options)


def four_ways(prompt: Any, **kwargs: Any) -> Any:
    async def call(model: Any) -> None:
        model.invoke(prompt, **kwargs)
        await model.ainvoke(prompt, **kwargs)
        list(model.stream(prompt, **kwargs))
        [chunk async for chunk in model.astream(prompt, **kwargs)]

    return call


@pytest.mark.parametrize("prompt", MESSAGES.values(), ids=MESSAGES)
async def test_every_kind_of_message_is_sent_as_chat_openai_sends_it(server, prompt):
    await assert_same_requests(server, four_ways(prompt))


@pytest.mark.parametrize("bound", TOOLS.values(), ids=TOOLS)
async def test_tools_are_sent_as_chat_openai_sends_them(server, bound):
    async def call(model: Any) -> None:
        await model.bind_tools(**bound).ainvoke([*MESSAGES["calls"]])

    await assert_same_requests(server, call)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
async def test_options_are_sent_as_chat_openai_sends_them(server, options):
    await assert_same_requests(server, four_ways("x"), **options)


async def test_options_of_one_call_are_sent_as_chat_openai_sends_them(server):
    options = {
        "temperature": 1.0,
        "stop": ["a"],
        "extra_body": {"k": 1},
        "extra_headers": {"x-team": "u"},
        "extra_query": {"api-version": "2"},
        "timeout": 7.0,
        "max_tokens": 3,
    }
    await assert_same_requests(server, four_ways("x", **options))


@pytest.mark.parametrize("model", [ChatOpenAI, our_model], ids=["ChatOpenAI", "ours"])
async def test_a_parameter_that_does_not_exist_is_refused_and_named(server, model):
    built = model(model="m", base_url=server.base_url, api_key="k", model_kwargs={"temprature": 0.2})
    sent = len(server.bodies)
    for ask in (lambda: built.invoke("x"), lambda: list(built.stream("x"))):
        with pytest.raises(TypeError, match="temprature"):
            ask()
    with pytest.raises(TypeError, match="temprature"):
        await built.ainvoke("x")
    assert len(server.bodies) == sent


async def test_structured_output_is_left_to_the_library(server):
    async def call(model: Any) -> None:
        bound = model.bind(response_format={"type": "json_object"})
        await bound.ainvoke("say json")

    await assert_same_requests(server, call)


def test_a_long_history_costs_a_fraction_of_chat_openais_cpu(server):
    history = [message for _ in range(60) for message in (*MESSAGES["calls"], AIMessage("answer " * 50))]

    def milliseconds(model: Any) -> float:
        bound = model.bind_tools([knowledge_search])
        bound.invoke("warm up")
        began = time.thread_time()
        for _ in range(3):
            bound.invoke(history)
        return 1000 * (time.thread_time() - began) / 3

    options = {"base_url": server.base_url, "api_key": "k", "streaming": False, "use_responses_api": False}
    plain = milliseconds(ChatOpenAI(model="m", **options))
    ours = milliseconds(load_chat_model("openai:m", **options))
    assert ours < 0.5 * plain, f"{ours:.1f} ms against {plain:.1f} ms"


def test_the_installed_library_has_all_that_the_cheap_path_needs():
    assert missing_hooks(ChatOpenAI) == []
    assert chat_model_class() is not ChatOpenAI


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_that_takes_other_parameters_is_one_that_the_library_lacks(hook):
    def with_other_parameters(self, *, something_new):
        raise AssertionError("never called by us")

    class Changed(ChatOpenAI):
        pass

    setattr(Changed, hook, with_other_parameters)
    assert missing_hooks(Changed) == [hook]


def test_the_fall_back_is_plain_chat_openai_and_is_logged_once(monkeypatch, caplog, server):
    monkeypatch.setitem(HOOKS, "_a_hook_of_another_version", lambda call: None)
    chat_model_class.cache_clear()
    try:
        with caplog.at_level(logging.DEBUG, logger="graphrag_agent"):
            models = [load_chat_model("openai:m", base_url=server.base_url) for _ in range(2)]
        assert [type(model) for model in models] == [ChatOpenAI] * 2
        assert models[0].invoke("x").text == "ok"
        assert [record.getMessage() for record in caplog.records if record.name.startswith("graphrag_agent")] == [
            "langchain-openai has no _a_hook_of_another_version: requests and streams take its own, slower path"
        ]
    finally:
        chat_model_class.cache_clear()


def test_the_model_goes_by_the_name_of_chat_openai(server):
    ours = load_chat_model("openai:m", base_url=server.base_url)
    assert (ours.get_name(), ours.lc_id()) == ("ChatOpenAI", ["langchain", "chat_models", "openai", "ChatOpenAI"])
