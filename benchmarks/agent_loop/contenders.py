"""The four that are compared, each as a plain user would build it, with the same prompt, tool and fake model."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import openai
from langchain.agents import create_agent
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import SecretStr

from benchmarks.agent_loop.bare_loop import BareLoop
from benchmarks.agent_loop.script import HITS, CannedKnowledge, search_text
from graphrag_agent.agent import RagAgent
from graphrag_agent.events import TextDelta
from graphrag_agent.graph.prompts.loading import render_prompt
from graphrag_agent.models.factory import load_chat_model
from graphrag_agent.persistence.checkpointers import open_checkpointer

OURS, AGENT, GRAPH, BARE = "graphrag_agent", "create_agent", "state_graph", "httpx"
NAMES = (OURS, AGENT, GRAPH, BARE)
Saver = BaseCheckpointSaver[Any]
Durability = Literal["exit", "async", "sync"]


class Contender(Protocol):
    """An agent loop that is measured."""

    name: str
    knowledge: CannedKnowledge
    may_copy: bool
    """Whether `grow` writes a long thread at once; not where the steps of the past matter (Delta channels)."""

    async def ask(self, question: str, thread: str, **config: Any) -> str:
        """The answer of one turn; `config` is for graphs."""
        ...

    def stream(self, question: str, thread: str) -> AsyncIterator[str]:
        """The text of one turn, token by token."""
        ...

    async def grow(self, thread: str, turns: int) -> None:
        """The thread after so many turns, made as cheaply as gives the same state."""
        ...


@dataclass
class GraphContender:
    """A compiled graph with a channel `messages`."""

    name: str
    graph: CompiledStateGraph[Any, Any, Any, Any]
    knowledge: CannedKnowledge
    may_copy: bool = True

    async def ask(self, question: str, thread: str, **config: Any) -> str:
        """The last message's text."""
        return str((await self._run(question, thread, **config))[-1].content)

    async def stream(self, question: str, thread: str) -> AsyncIterator[str]:
        """Pieces of text as LangGraph's mode `messages` brings them."""
        given = {"messages": [HumanMessage(question)]}
        pieces = self.graph.astream(given, _config(thread), stream_mode="messages")
        async for message, _ in pieces:
            if isinstance(message, AIMessageChunk) and message.content:
                yield str(message.content)

    async def grow(self, thread: str, turns: int) -> None:
        """By running the turns, or by copies of one real turn, each with ids of its own."""
        if not self.may_copy:
            for _ in range(turns):
                await self.ask("What holds?", thread)
            return
        turn = await self._run("What holds?", f"{thread}-model")
        copies = [m.model_copy(update={"id": uuid.uuid4().hex}) for _ in range(turns) for m in turn]
        if copies:
            await self.graph.aupdate_state(_config(thread), {"messages": copies}, as_node="model")

    async def _run(self, question: str, thread: str, **config: Any) -> list[BaseMessage]:
        given = {"messages": [HumanMessage(question)]}
        config = {**_config(thread), **config}
        state = await self.graph.ainvoke(given, cast(RunnableConfig, config))
        return list(state["messages"])


@dataclass
class FacadeContender:
    """`RagAgent`, the package's own way to ask and to stream, with its default durability."""

    name: str
    agent: RagAgent
    knowledge: CannedKnowledge
    may_copy: bool = False

    async def ask(self, question: str, thread: str, **config: Any) -> str:
        """The answer's text; `config` is for the graph, where it is asked for by itself."""
        if not config:
            return (await self.agent.aask(question, thread=thread)).text
        given = {"messages": [HumanMessage(question)]}
        state = await self.agent.graph.ainvoke(given, cast(RunnableConfig, {**_config(thread), **config}))
        return str(state["messages"][-1].content)

    async def stream(self, question: str, thread: str) -> AsyncIterator[str]:
        """Pieces of text as the facade's events bring them."""
        async for event in self.agent.astream(question, thread=thread):
            if isinstance(event, TextDelta):
                yield event.text

    async def grow(self, thread: str, turns: int) -> None:
        """By running the turns: where channels are Delta, the steps of the past matter."""
        for _ in range(turns):
            await self.ask("What holds?", thread)


@asynccontextmanager
async def open_contenders(
    url: str,
    model: str,
    *,
    streaming: bool = False,
    sqlite: Path | None = None,
    delay_seconds: float = 0.0,
    durability: Durability = "exit",
) -> AsyncIterator[list[Contender]]:
    """All four on this model; with `sqlite`, each graph has a file of its own there, else memory.

    `streaming`: the models ask for streams even where nobody reads them. `durability`: ours; "exit" is the package's
    default, the others run with LangGraph's, which is "async".
    """
    async with AsyncExitStack() as stack:
        knowledge = {name: CannedKnowledge(delay_seconds=delay_seconds) for name in NAMES}
        tools = {name: _search_tool(knowledge[name]) for name in NAMES}
        savers: list[Saver] = [InMemorySaver(), InMemorySaver(), InMemorySaver()]
        if sqlite:
            files = [str(sqlite / f"{name}.sqlite") for name in (AGENT, GRAPH)]
            savers = [await stack.enter_async_context(open_checkpointer("sqlite", sqlite / "ours.sqlite"))]
            savers += [await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(file)) for file in files]
        # a client for each and for this run alone: the one that all ChatOpenAI share outlives its event loop
        clients = [await stack.enter_async_context(openai.DefaultAsyncHttpxClient()) for _ in range(3)]
        chats = [_chat_model(url, model, client, streaming=streaming) for client in clients[:2]]
        our_model = load_chat_model(f"openai:{model}", base_url=url, streaming=streaming)
        ours = RagAgent(model=our_model, knowledge=knowledge[OURS], checkpointer=savers[0], durability=durability)
        agent = create_agent(chats[0], [tools[AGENT]], system_prompt=render_prompt("system"), checkpointer=savers[1])
        graph = _hand_written(chats[1], tools[GRAPH], savers[2])
        yield [
            FacadeContender(OURS, ours, knowledge[OURS]),
            GraphContender(AGENT, agent, knowledge[AGENT]),
            GraphContender(GRAPH, graph, knowledge[GRAPH]),
            BareLoop(
                f"{url}/chat/completions", model, [convert_to_openai_tool(tools[BARE])], clients[2], knowledge[BARE]
            ),
        ]


def _chat_model(url: str, model: str, client: openai.DefaultAsyncHttpxClient, *, streaming: bool) -> ChatOpenAI:
    key = SecretStr("none")
    return ChatOpenAI(model=model, base_url=url, api_key=key, streaming=streaming, http_async_client=client)


def _hand_written(model: ChatOpenAI, search: BaseTool, saver: Saver) -> CompiledStateGraph[Any, Any, Any, Any]:
    bound, system = model.bind_tools([search]), SystemMessage(render_prompt("system"))

    async def call_model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await bound.ainvoke([system, *state["messages"]])]}

    diagram = StateGraph(MessagesState)
    diagram.add_node("model", call_model)
    diagram.add_node("tools", ToolNode([search]))
    diagram.add_edge(START, "model")
    diagram.add_conditional_edges("model", tools_condition)
    diagram.add_edge("tools", "model")
    return diagram.compile(checkpointer=saver)


def _search_tool(knowledge: CannedKnowledge) -> BaseTool:
    @tool
    async def knowledge_search(query: str, top_k: int = HITS) -> str:
        """Search the knowledge base for passages that answer a question. One topic a call.

        Use it for anything that the documents may know. Each passage comes with an id; cite it in the answer as [id].

        Args:
            query: What to look for, in the user's language; one topic
            top_k: How many passages to return
        """
        return await search_text(knowledge, query, top_k)

    return knowledge_search


def _config(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread}}
