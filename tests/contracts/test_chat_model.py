"""What every chat model of the package must do, over each of them."""

import json

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import tool
from langchain_tests.unit_tests import ChatModelUnitTests

from graphrag_agent.models.extractive import ExtractiveChatModel
from graphrag_agent.models.factory import load_chat_model
from graphrag_agent.models.text_tools.model import TextToolsModel
from graphrag_agent.testing import ScriptedChatModel, call
from tests.fake_openai import FakeOpenAI, tool_message

TEXT = "Parental leave lasts 12 weeks. [a2b3c]"
QUERIES = ["病假", "产假"]
ASKED = [HumanMessage("比较病假和产假")]
GIVEN = [
    SystemMessage('<evidence id="a2b3c" title="Leave">\nParental leave lasts 12 weeks.\n</evidence>'),
    HumanMessage("How long is parental leave?"),
]


@tool
def knowledge_search(query: str) -> str:
    """Search the documents."""
    return query


def openai_reply(body):
    return tool_message(*(("knowledge_search", {"query": query}) for query in QUERIES)) if "tools" in body else TEXT


def scripted_reply(messages, tools):
    return [call("knowledge_search", query=query) for query in QUERIES] if tools else TEXT


def text_reply(body):
    """As a server answers that takes no tools: calls are text."""
    assert "tools" not in body
    if "<tool_call" not in body["messages"][0]["content"]:
        return TEXT
    calls = [json.dumps({"query": query}, ensure_ascii=False) for query in QUERIES]
    return "\n".join(f'<tool_call name="knowledge_search">{arguments}</tool_call>' for arguments in calls)


@pytest.fixture(params=["offline", "scripted", "openai", "text tools"])
def model(request):
    if request.param in {"openai", "text tools"}:
        with FakeOpenAI(openai_reply if request.param == "openai" else text_reply) as server:
            native = load_chat_model("openai:local", base_url=server.base_url, max_retries=0)
            yield native if request.param == "openai" else TextToolsModel(inner=native)
    else:
        yield ExtractiveChatModel() if request.param == "offline" else ScriptedChatModel(*[scripted_reply] * 4)


def merged(chunks):
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    return whole


async def replies(runnable, prompt):
    """The reply in each of the four ways to call a model."""
    return [
        runnable.invoke(prompt),
        await runnable.ainvoke(prompt),
        merged(list(runnable.stream(prompt))),
        merged([chunk async for chunk in runnable.astream(prompt)]),
    ]


async def test_every_way_of_calling_gives_the_same_text(model):
    for reply in await replies(model, GIVEN):
        assert (reply.text, reply.tool_calls) == (TEXT, [])


async def test_every_way_of_calling_gives_the_same_tool_calls(model):
    for reply in await replies(model.bind_tools([knowledge_search]), ASKED):
        assert [(c["name"], c["args"]) for c in reply.tool_calls] == [
            ("knowledge_search", {"query": query}) for query in QUERIES
        ]
        assert len({c["id"] for c in reply.tool_calls}) == 2
        assert (reply.text, reply.invalid_tool_calls) == ("", [])


async def test_usage_and_model_name_are_reported(model):
    for reply in await replies(model, GIVEN):
        usage = reply.usage_metadata
        assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 1
        assert reply.response_metadata["model_name"] in {"offline-extractive", "scripted", "local"}


def test_a_streamed_reply_comes_in_pieces_and_tells_its_end(model):
    chunks = list(model.stream(GIVEN))
    assert sum(bool(chunk.text) for chunk in chunks) > 3
    assert [chunk.chunk_position for chunk in chunks] == [None] * (len(chunks) - 1) + ["last"]
    assert len({chunk.id for chunk in chunks}) == 1


def test_a_streamed_call_names_itself_first_and_then_brings_its_arguments(model):
    pieces = [piece for chunk in model.bind_tools([knowledge_search]).stream(ASKED) for piece in chunk.tool_call_chunks]
    heads = [piece for piece in pieces if piece["name"]]
    assert [(piece["index"], piece["name"], piece["args"]) for piece in heads] == [
        (0, "knowledge_search", ""),
        (1, "knowledge_search", ""),
    ]
    assert ["".join(piece["args"] for piece in pieces if piece["index"] == index) for index in (0, 1)] == [
        json.dumps({"query": query}, ensure_ascii=False) for query in QUERIES
    ]
    assert [piece["index"] for piece in pieces] == sorted(piece["index"] for piece in pieces)


class TestOfflineModelIsAStandardChatModel(ChatModelUnitTests):
    """The suite that LangChain gives to integration packages."""

    @pytest.fixture
    def benchmark(self, benchmark):
        """Once is enough: the suite's stopwatch would take a second and print a table."""
        benchmark.disabled = True
        return benchmark

    @property
    def chat_model_class(self):
        return ExtractiveChatModel

    @property
    def chat_model_params(self):
        return {}

    @property
    def has_structured_output(self):
        return False
