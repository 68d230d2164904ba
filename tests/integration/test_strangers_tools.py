"""Tools that others wrote, in the whole graph: what they do must not harm the turn, nor happen twice."""

import asyncio
import json
import re
import threading
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel, ConfigDict, Field, Json, computed_field

from graphrag_agent import Budget, RagAgent, ToolSpec, build_rag_graph
from graphrag_agent.errors import SettingsError, ToolFailedError
from graphrag_agent.testing import ScriptedChatModel, call
from graphrag_agent.token_estimate import estimate_tokens
from graphrag_agent.tools import spec as spec_module
from graphrag_agent.tools.research_question import RESEARCH_FAMILY
from graphrag_agent.tools.spec import FAMILIES, SEARCH_FAMILY
from tests.canned import CannedKnowledge

ASK = {"messages": [{"role": "user", "content": "How long is sick leave?"}]}


class Tracer(BaseCallbackHandler):
    """With one that listens, LangChain runs the tool in a task of its own."""


def result_of(asked: Any, tools: list[Any], *, traced: bool = False, **options: Any) -> ToolMessage:
    """What the model saw of the call."""
    with ScriptedChatModel(asked, "done") as model:
        graph = build_rag_graph(model=model, knowledge=CannedKnowledge(), tools=tools)
        out = graph.invoke(ASK, {"callbacks": [Tracer()] if traced else []}, **options)
    assert out["outcome"]["ending"] == "answered"
    return next(message for message in model.requests[1].messages if isinstance(message, ToolMessage))


def error_in(result: ToolMessage) -> dict[str, Any]:
    return json.JSONDecoder().raw_decode(result.text)[0]["error"]


def quits(x: int) -> str:
    """Calls a library that exits, as argparse does."""
    raise SystemExit(3)


async def quits_later(x: int) -> str:
    """The same, async."""
    raise SystemExit(3)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("given", [quits, quits_later])
def test_a_tool_that_exits_only_fails(given: Any, traced: bool):
    failed = error_in(result_of(call(given.__name__, x=1), [given], traced=traced))
    assert failed == {"type": "ToolFailedError", "message": "the tool called sys.exit(3)", "retryable": False}


@pytest.mark.parametrize("asked", [{}, {"top_k": None}, {"top_k": 9}])
def test_a_request_narrows_a_top_k_that_is_a_number(asked: dict[str, Any]):
    def find_people(name: str, top_k: int | None = None) -> str:
        """Find people."""
        return f"found {top_k}"

    found = result_of(call("find_people", name="a", **asked), [find_people], context={"top_k": 5})
    assert found.text.startswith(f"found {5 if asked.get('top_k') else None}")


@pytest.mark.parametrize("top_k", ["all", "5", True, None])
def test_a_search_of_ones_own_may_have_any_top_k(top_k: Any):
    def find(query: str, top_k: Any = "all") -> str:
        """Find."""
        return f"found {top_k}"

    spec = ToolSpec(tool(find), family="search")
    assert result_of(call("find", query="a", top_k=top_k), [spec], context={"top_k": 5}).text.startswith(
        f"found {top_k}"
    )


@pytest.mark.parametrize("traced", [False, True])
def test_a_tool_described_by_a_json_schema_runs(traced: bool):
    async def weather(**arguments: Any) -> str:
        return f"sunny in {arguments}"

    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    mcp = StructuredTool(name="weather", description="Weather.", coroutine=weather, args_schema=schema)
    assert result_of(call("weather", city="Oslo"), [mcp], traced=traced).text.startswith("sunny in {'city': 'Oslo'}")
    assert error_in(result_of(call("weather"), [mcp], traced=traced))["type"] == "bad_arguments"


class Range(BaseModel):
    start: int
    end: int


@pytest.mark.parametrize("traced", [False, True])
def test_a_tool_gets_the_models_of_its_signature(traced: bool):
    async def total(span: Range, more: list[Range] | None = None) -> str:
        """Sum."""
        return str(sum(sum(range(each.start, each.end)) for each in (span, *(more or ()))))

    span = {"start": 1, "end": 4}
    assert result_of(call("total", span=span, more=[span]), [total], traced=traced).text.startswith("12")


class Stay(BaseModel):
    model_config = ConfigDict(extra="forbid")
    from_day: int = Field(alias="from")
    to: int = 9

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorated property
    @property
    def days(self) -> int:
        return self.to - self.from_day


def count_days(stay: Stay, options: Json[dict[str, int]]) -> str:
    """Count."""
    return f"{stay.days + options['more']} days"


async def count_days_later(stay: Stay, options: Json[dict[str, int]]) -> str:
    """Count."""
    return count_days(stay, options)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("given", [count_days, count_days_later])
def test_a_tool_gets_what_the_model_wrote_and_not_what_was_made_of_it(given: Any, traced: bool):
    """LangChain reads the arguments itself; a dump of what was read has no aliases, and properties of its own."""
    asked = call(given.__name__, stay={"from": 2}, options='{"more": 1}')
    assert result_of(asked, [given], traced=traced).text.startswith("8 days")


@pytest.mark.parametrize("traced", [False, True])
def test_an_argument_with_an_alias_is_given_under_the_name_that_the_model_was_told(traced: bool):
    class Span(BaseModel):
        from_day: int = Field(alias="from")
        to: int = 9

    def days(from_day: int, to: int) -> str:
        return f"{to - from_day} days"

    given = StructuredTool.from_function(days, name="days", description="Days.", args_schema=Span)
    assert result_of(call("days", from_day=2), [given], traced=traced).text.startswith("7 days")


async def take_all(rows: list[Any], **_: Any) -> str:
    """Take."""
    return str([rows[0].pop("city"), rows.pop()])


@pytest.mark.parametrize("schema", [None, {"type": "object", "properties": {"rows": {"type": "array"}}}])
@pytest.mark.parametrize("traced", [False, True])
def test_a_tool_that_changes_its_arguments_changes_nobody_elses(traced: bool, schema: dict[str, Any] | None):
    async def take(rows: list[Any]) -> str:
        """Take."""
        return await take_all(rows)

    given = StructuredTool(name="take", description="d", coroutine=take_all, args_schema=schema) if schema else take
    with ScriptedChatModel(call("take", rows=[{"city": "Oslo"}]), "done") as model:
        graph = build_rag_graph(model=model, tools=[given])
        graph.invoke(ASK, {"callbacks": [Tracer()] if traced else []})
    asked = next(message for message in model.requests[1].messages if isinstance(message, AIMessage))
    assert asked.tool_calls[0]["args"] == {"rows": [{"city": "Oslo"}]}


def test_a_default_of_a_json_schema_is_new_for_each_call():
    async def note(**arguments: Any) -> str:
        arguments["lines"].append("mine")
        return str(arguments["lines"])

    schema = {"type": "object", "properties": {"lines": {"type": "array", "default": []}}}
    given = StructuredTool(name="note", description="Note.", coroutine=note, args_schema=schema)
    assert [result_of(call("note"), [given]).text.splitlines()[0] for _ in range(2)] == ["['mine']"] * 2


def test_each_try_of_a_call_has_the_models_arguments():
    seen: list[list[int]] = []

    async def send(lines: list[int]) -> str:
        """Send."""
        seen.append([*lines])
        lines.clear()
        raise ToolFailedError("busy", retryable=True)

    spec = ToolSpec(StructuredTool.from_function(coroutine=send, name="send"), side_effect_free=True)
    result_of(call("send", lines=[1, 2]), [spec])
    assert seen == [[1, 2], [1, 2]]


@pytest.mark.parametrize("error", [TimeoutError(), TimeoutError("no answer"), ConnectionError("it hung up")])
def test_what_may_have_happened_is_not_done_twice(error: Exception):
    sent: list[str] = []

    async def send_mail(to: str) -> str:
        """Send a mail."""
        sent.append(to)
        raise error

    mail = call("send_mail", to="anna")
    with ScriptedChatModel(mail, mail, "done") as model:
        build_rag_graph(model=model, tools=[send_mail]).invoke(ASK)
    assert sent == ["anna"]
    first = next(message for message in model.requests[1].messages if isinstance(message, ToolMessage))
    assert error_in(first)["retryable"] is False
    assert error_in(first)["message"].endswith("it may have happened all the same")


def test_a_tool_that_knows_that_nothing_happened_may_be_called_again():
    sent: list[str] = []

    async def send_mail(to: str) -> str:
        """Send a mail."""
        sent.append(to)
        raise ToolFailedError("busy", retryable=True)

    mail = call("send_mail", to="anna")
    with ScriptedChatModel(mail, mail, "done") as model:
        build_rag_graph(model=model, tools=[send_mail]).invoke(ASK)
    assert sent == ["anna", "anna"]


def test_results_one_after_the_other_stay_within_the_tokens_for_evidence():
    def dump(part: int) -> str:
        """Dump a part."""
        return f"part {part}: " + "some words of data that go on; " * 5_000

    with ScriptedChatModel(*(call("dump", part=part) for part in range(5)), "done") as model:
        build_rag_graph(model=model, tools=[dump], budget=Budget(max_evidence_tokens=1_000)).invoke(ASK)
    shown = [message.text for message in model.requests[-1].messages if isinstance(message, ToolMessage)]
    assert sum(map(estimate_tokens, shown)) < 1_000 + 5 * 100  # the beginning of each is shown and what was left out


def test_half_a_character_in_a_question_or_a_result_is_not_sent():
    def half() -> str:
        """Half an emoji."""
        return "found \ud83d"

    with ScriptedChatModel(call("half"), "done") as model:
        build_rag_graph(model=model, tools=[half]).invoke({"messages": [("user", "hello \ud83d")]})
    texts = [message.text for message in model.requests[1].messages]
    assert "hello �" in texts
    assert all(text.encode() for text in texts if text)


def test_a_budget_for_a_family_that_there_is_not_is_refused():
    def greet(name: str) -> str:
        """Greet."""
        return name

    def build(family: str) -> Any:
        tools = [ToolSpec(tool(greet), family="manners")]
        budget = Budget(max_family_calls={family: 1})
        return build_rag_graph(model="offline", knowledge=CannedKnowledge(), tools=tools, budget=budget)

    with pytest.raises(SettingsError, match=r"no family 'knowledge_search' of tools; there are: .*manners.*search"):
        build("knowledge_search")
    assert build("manners")
    assert build("web")


def test_every_family_of_the_packages_tools_may_be_named():
    sources = (Path(spec_module.__file__).parent).glob("*.py")
    named = {name for path in sources for name in re.findall(r'family="(\w+)"', path.read_text())}
    assert named <= FAMILIES
    assert {SEARCH_FAMILY, RESEARCH_FAMILY} <= FAMILIES


async def counts_by_day() -> Any:
    """Count."""
    return {date(2026, 1, 2): 3, ("a", "b"): 4}


async def sums_itself() -> Any:
    """Sum."""
    ring: list[Any] = [1]
    ring.append(ring)
    return ring


@pytest.mark.parametrize(
    ("given", "told"),
    [(counts_by_day, "{datetime.date(2026, 1, 2): 3, ('a', 'b'): 4}"), (sums_itself, "[1, [...]]")],
)
@pytest.mark.parametrize("traced", [False, True])
def test_a_result_that_json_can_not_hold_is_told_as_python_writes_it(given: Any, told: str, traced: bool):
    result = result_of(call(given.__name__), [given], traced=traced)
    assert (result.status, result.text.splitlines()[0]) == ("success", told)


@pytest.mark.parametrize("schema", [None, {"type": "object", "properties": {}}])
def test_blocks_of_content_are_told_as_text_without_the_bytes_of_pictures(schema: dict[str, Any] | None):
    """As the tools of an MCP server give."""

    async def screenshot() -> Any:
        """Take a screenshot."""
        text = {"type": "text", "text": 'The "page" was:', "id": "lc_1"}
        picture = {"type": "image", "base64": "iVBORw0K" * 10_000, "mime_type": "image/png"}
        return [text, picture], None

    options: Any = {"args_schema": schema, "response_format": "content_and_artifact"}
    given = StructuredTool.from_function(coroutine=screenshot, description="d", **options)
    lines = result_of(call("screenshot"), [given]).text.splitlines()
    assert lines[:2] == ['The "page" was:', "[image left out: only text is shown]"]


@pytest.mark.parametrize(
    "rows", [[], ["a", "b"], [{"type": "text"}], [{"type": "file"}], [{"type": "text", "text": 1}]]
)
def test_rows_that_only_look_like_blocks_are_told_as_they_are(rows: list[Any]):
    async def list_rows() -> Any:
        """List."""
        return rows

    assert json.JSONDecoder().raw_decode(result_of(call("list_rows"), [list_rows]).text)[0] == rows


@pytest.mark.parametrize("traced", [False, True])
def test_a_command_of_a_tool_is_told_as_lost_and_not_as_a_result(traced: bool):
    async def hand_over() -> Any:
        """Hand over."""
        return Command(goto="model", update={"messages": []})

    failed = error_in(result_of(call("hand_over"), [hand_over], traced=traced))
    assert failed["message"] == "the tool returned a Command, which this graph doesn't follow; its result is lost"


async def fails_in_a_group() -> str:
    """Fail."""
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.wait_for(asyncio.sleep(0), 1))
        group.create_task(_refuse())
    return ""


async def _refuse() -> None:
    raise ToolFailedError("the server is closed", retryable=True)


async def fails_without_words() -> str:
    """Fail."""

    class OddError(Exception):
        def __str__(self) -> str:
            raise KeyError("code")

    raise OddError


@pytest.mark.parametrize(
    ("given", "failed"),
    [
        (fails_in_a_group, {"type": "ToolFailedError", "message": "the server is closed", "retryable": True}),
        (fails_without_words, {"type": "OddError", "message": "the tool failed", "retryable": False}),
    ],
)
def test_an_odd_error_is_told_in_the_words_that_it_has(given: Any, failed: dict[str, Any]):
    assert error_in(result_of(call(given.__name__), [given])) == failed


@pytest.mark.parametrize("kept", [None, {"files": ["a.png"]}])
@pytest.mark.parametrize("traced", [False, True])
def test_an_artifact_that_can_not_be_written_down_costs_no_turn(kept: dict[str, Any] | None, traced: bool):
    """A DataFrame, say, which is what artifacts are for."""

    async def plot() -> Any:
        """Plot."""
        return "drawn", {**kept, "lock": threading.Lock()} if kept else threading.Lock()

    given = StructuredTool.from_function(coroutine=plot, response_format="content_and_artifact")
    with ScriptedChatModel(call("plot"), "done") as model:
        graph = build_rag_graph(model=model, tools=[given], checkpointer=InMemorySaver())
        config: Any = {"configurable": {"thread_id": "1"}, "callbacks": [Tracer()] if traced else []}
        assert graph.invoke(ASK, config, durability="sync")["outcome"]["ending"] == "answered"
    shown = next(message for message in model.requests[1].messages if isinstance(message, ToolMessage))
    assert (shown.text.splitlines()[0], shown.artifact) == ("drawn", kept)


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1])
def test_a_number_that_can_not_be_written_down_costs_no_turn(number: int):
    def look_up(account: int, more: Any = None) -> str:
        """Look up."""
        return f"account {account} {more}"

    asked = call("look_up", account=1, more={"others": [number]})
    text = call("look_up", account=str(number), more=2**64 - 1)
    with ScriptedChatModel(asked, text, "done") as model:
        graph = build_rag_graph(model=model, tools=[look_up], checkpointer=InMemorySaver())
        graph.invoke(ASK, {"configurable": {"thread_id": "1"}}, durability="sync")
    refused, found = (message for message in model.requests[2].messages if isinstance(message, ToolMessage))
    assert error_in(refused)["message"].endswith("no checkpointer can write down; send it as a text")
    assert found.text.startswith(f"account {number} {2**64 - 1}")


GOOD = {"id": "a2bcd", "chunk_id": "c", "document_id": "d", "score": 1.0, "start": 0, "end": 5, "at": [0, 5]}


@pytest.mark.parametrize(
    "changed",
    [{"at": None}, {"at": [0]}, {"at": "05"}, {"id": 7}, {"title": 7}, {"page": "1"}, {"score": None}, {"merged": 7}],
    ids=lambda changed: str(changed),
)
def test_an_artifact_that_only_looks_like_evidence_costs_no_turn(changed: dict[str, Any]):
    async def look() -> tuple[str, Any]:
        """Look."""
        return "Hello there", {"hits": [{**GOOD, **changed}], "kept": 1}

    given = StructuredTool.from_function(coroutine=look, response_format="content_and_artifact")
    with ScriptedChatModel(call("look"), "Hello.") as model:
        answer = RagAgent(model=model, tools=[given]).ask("Look.")
    (shown,) = [message for message in model.requests[1].messages if isinstance(message, ToolMessage)]
    assert (answer.text, answer.outcome["ending"], shown.artifact) == ("Hello.", "answered", {"kept": 1})


def test_a_tool_of_ones_own_may_bring_evidence():
    async def look() -> tuple[str, Any]:
        """Look."""
        return "Hello there", {"hits": [GOOD]}

    given = StructuredTool.from_function(coroutine=look, response_format="content_and_artifact")
    with ScriptedChatModel(call("look"), "Hello [a2bcd].") as model:
        answer = RagAgent(model=model, tools=[given]).ask("Look.")
    assert [(item.id, item.text) for item in answer.citations] == [("a2bcd", "Hello")]
