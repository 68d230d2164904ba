"""The agent loop, drawn: nodes, where each may lead, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from langgraph.graph import START, StateGraph

from graphrag_agent.context import AgentContext
from graphrag_agent.graph.loop import Loop
from graphrag_agent.graph.node import Node
from graphrag_agent.graph.nodes.await_client_tools import await_client_tools
from graphrag_agent.graph.nodes.commit_answer import commit_answer
from graphrag_agent.graph.nodes.dedupe_guard import dedupe_guard
from graphrag_agent.graph.nodes.model import model
from graphrag_agent.graph.nodes.retrieve_once import retrieve_once
from graphrag_agent.graph.nodes.start_turn import start_turn
from graphrag_agent.graph.nodes.summarize_history import summarize_history
from graphrag_agent.graph.nodes.summarize_on_max_iterations import summarize_on_max_iterations
from graphrag_agent.graph.nodes.tool_dispatch import tool_dispatch
from graphrag_agent.graph.state import TurnInput, TurnOutput, TurnState

Diagram = StateGraph[TurnState, AgentContext, TurnInput, TurnOutput]
STOP = "summarize_on_max_iterations"


def draw(loop: Loop) -> Diagram:
    """The graph of one loop, not yet compiled."""
    diagram = StateGraph(TurnState, context_schema=AgentContext, input_schema=TurnInput, output_schema=TurnOutput)

    def add(node: Callable[..., Any], *leads_to: str, does: str) -> None:
        diagram.add_node(
            node.__name__, Node(partial(node, loop)), destinations=leads_to, metadata={"description": does}
        )

    ways = ("model", "retrieve_once")
    detour = ("summarize_history",) if loop.budget.history_summary == "model" else ()
    add(start_turn, *ways, *detour, does="Clears the last turn's leavings, brings cited evidence back")
    if detour:
        add(summarize_history, *ways, does="Sums up turns that are too old to be shown")
    add(retrieve_once, "model", does="One search with the user's words, where that was asked for")
    add(model, "dedupe_guard", "commit_answer", STOP, does="One model call")
    add(dedupe_guard, "tool_dispatch", "await_client_tools", "model", STOP, does="One verdict for each tool call")
    serial = ("tool_dispatch", "await_client_tools")
    add(tool_dispatch, "model", *serial, STOP, does="Runs tool calls; errors become messages")
    add(await_client_tools, "model", STOP, does="Waits for the results of the client's tools")
    add(summarize_on_max_iterations, "commit_answer", does="A last call without tools: answer from the evidence")
    add(commit_answer, does="Resolves citations, writes the answer, empties the turn")
    diagram.add_edge(START, "start_turn")
    diagram.set_finish_point("commit_answer")
    return diagram
