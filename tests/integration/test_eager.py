"""Searches that start while the model still writes."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import PrivateAttr

from graphrag_agent import AgentContext, ToolSpec, build_rag_graph
from graphrag_agent.graph import eager
from graphrag_agent.testing import ScriptedChatModel, call
from tests.canned import CannedKnowledge
from tests.waiting import until_here

ASK = {"messages": [{"role": "user", "content": "How long is sick leave?"}]}
TOOL_SECONDS = 0.4


class SlowKnowledge(CannedKnowledge):
    """Each search takes 0.4 s; keeps when the first began, counts those that were cancelled."""

    def __init__(self, seconds: float = TOOL_SECONDS) -> None:
        super().__init__()
        self.seconds = seconds
        self.cancelled = 0
        self.began = 0.0

    async def asearch(self, query: str, **more: Any) -> Any:
        self.began = self.began or time.perf_counter()
        found = await super().asearch(query, **more)
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return found


class TimedModel(ScriptedChatModel):
    """Its calls are complete at 50 ms, its message ends at 500 ms."""

    streaming: bool = False
    _ended: list[float] = PrivateAttr(default_factory=list)
    """When each message did."""

    def wrote(self, moment: float) -> bool:
        """Whether the first message had not ended at that moment."""
        return moment < self._ended[0]

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        began = time.perf_counter()
        for at, message in _timed(self._play(messages, kwargs)):
            await asyncio.sleep(max(0.0, began + at - time.perf_counter()))
            self._ended += [time.perf_counter()] if message.chunk_position == "last" else []
            chunk = ChatGenerationChunk(message=message)
            if run_manager:
                await run_manager.on_llm_new_token(message.text, chunk=chunk)
            yield chunk


def _timed(message: AIMessage) -> list[tuple[float, AIMessageChunk]]:
    if not message.tool_calls:
        return [(0.0, AIMessageChunk(content=message.content, chunk_position="last"))]
    parts = []
    for index, made in enumerate(message.tool_calls):
        text = json.dumps(made["args"])
        cut = [(made["name"], None, made["id"]), (None, text[:5], None), (None, text[5:], None)]
        for place, (name, args, id_) in enumerate(cut):
            piece = tool_call_chunk(name=name, args=args, id=id_, index=index)
            parts.append((0.02 + 0.015 * place, AIMessageChunk(content="", tool_call_chunks=[piece])))
    parts.sort(key=lambda part: part[0])
    return [*parts, (0.5, AIMessageChunk(content="", chunk_position="last"))]


def search(query: str) -> Any:
    return call("knowledge_search", query=query)


def timed_model(*steps: Any) -> TimedModel:
    return TimedModel(*(steps or ([search("one"), search("two"), search("ONE ")], "done")), streaming=True)


def build(knowledge: Any, *steps: Any, **options: Any) -> Any:
    return build_rag_graph(model=timed_model(*steps), knowledge=knowledge, **options)


async def _consume(graph: Any, mode: str) -> None:
    config = {"configurable": {"thread_id": "t"}}
    if mode == "ainvoke":
        await graph.ainvoke(ASK, config)
    elif mode == "v3":
        run = await graph.astream_events(ASK, config, version="v3")
        async for message in run.messages:
            async for _ in message.text:
                pass
    else:
        async for _ in graph.astream(ASK, config, stream_mode=mode):
            pass


@pytest.mark.filterwarnings("ignore:.*v3.*")
@pytest.mark.parametrize("mode", ["ainvoke", "values", "updates", "messages", "custom", "tasks", "debug", "v3"])
async def test_a_search_runs_while_the_message_is_still_written(mode: str):
    knowledge, model = SlowKnowledge(), timed_model()
    await _consume(build_rag_graph(model=model, knowledge=knowledge, checkpointer=InMemorySaver()), mode)
    assert sorted(knowledge.queries) == ["one", "two"]
    assert model.wrote(knowledge.began)


def test_sync_callers_have_it_too():
    knowledge, model = SlowKnowledge(), timed_model()
    build_rag_graph(model=model, knowledge=knowledge).invoke(ASK)
    assert sorted(knowledge.queries) == ["one", "two"]
    assert model.wrote(knowledge.began)


def test_one_after_the_other_means_that_nothing_starts_early():
    knowledge, model = SlowKnowledge(), timed_model()
    began = time.perf_counter()
    build_rag_graph(model=model, knowledge=knowledge).invoke(ASK, context=AgentContext(parallel_tool_calls=False))
    assert time.perf_counter() - began > 0.5 + 2 * TOOL_SECONDS
    assert not model.wrote(knowledge.began)
    assert knowledge.queries == ["one", "two"]


def test_a_tool_with_side_effects_waits_for_the_end_of_the_message():
    ran: list[float] = []

    @tool
    async def send(text: str) -> str:
        """Send."""
        ran.append(time.perf_counter())
        return "sent"

    began = time.perf_counter()
    build(CannedKnowledge(), call("send", text="hi"), "done", tools=[ToolSpec(send)]).invoke(ASK)
    assert ran[0] - began > 0.45


def test_what_the_guard_would_refuse_does_not_start_early():
    knowledge = SlowKnowledge(0)
    batch = [search("a"), call("knowledge_search", query="b", tenant="x"), call("nope", query="c"), search(" A")]
    build(knowledge, batch, "done").invoke(ASK)
    assert knowledge.queries == ["a"]


@pytest.mark.parametrize("moment", [0.03, 0.1, 0.3, 0.48, 0.55, 0.7])
async def test_a_cancelled_run_leaves_nothing_running(moment: float, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(eager, "LEASE_SECONDS", 0.1)
    knowledge = SlowKnowledge(5.0)
    before = asyncio.all_tasks()
    run = asyncio.create_task(
        build(knowledge, checkpointer=InMemorySaver()).ainvoke(ASK, {"configurable": {"thread_id": "t"}})
    )
    await asyncio.sleep(moment)
    run.cancel()
    await asyncio.wait([run])
    await until_here(lambda: all(task.done() for task in asyncio.all_tasks() - before))
    assert knowledge.cancelled == len(knowledge.queries)


async def test_a_run_stopped_before_dispatch_runs_the_calls_when_it_is_resumed():
    knowledge = SlowKnowledge(0)
    graph = build(knowledge, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    await graph.ainvoke(ASK, config, interrupt_before=["tool_dispatch"])
    out = await graph.ainvoke(None, config)
    assert out["messages"][-1].text == "done"
    assert out["outcome"]["calls"]["run"] == 2


async def test_a_model_that_fails_while_it_writes_cancels_what_it_started():
    class Breaking(TimedModel):
        async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
            async for chunk in super()._astream(*args, **kwargs):
                if chunk.message.chunk_position == "last" and chunk.message.content == "":
                    raise RuntimeError("cut")
                yield chunk

    knowledge = SlowKnowledge(5.0)
    graph = build_rag_graph(model=Breaking([search("one")], "never", streaming=True), knowledge=knowledge)
    out = await graph.ainvoke(ASK)
    await asyncio.sleep(0.01)
    assert out["outcome"]["ending"] == "model_error"
    assert knowledge.cancelled == 1
