"""A model without native calls, as the loop sees it."""

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from graphrag_agent.models.text_tools.model import TextToolsModel
from graphrag_agent.testing import ScriptedChatModel, call

CALL = '<tool_call name="knowledge_search">{"query": "sick leave"}</tool_call>'
BROKEN = '<tool_call name="knowledge_search">{"query": "sick" leave}</tool_call>'
ASKED = [SystemMessage("Be brief."), HumanMessage("How long is sick leave?")]


@tool
def knowledge_search(query: str, top_k: int = 5) -> str:
    """Search the documents."""
    return query


def wrapped(*steps, **fields):
    return TextToolsModel(inner=ScriptedChatModel(*steps), **fields)


def bound(model, **options):
    return model.bind_tools([knowledge_search], **options)


def merged(chunks):
    whole, *rest = chunks
    for chunk in rest:
        whole += chunk
    return whole


async def ask(model, way, messages=ASKED):
    match way:
        case "invoke":
            return model.invoke(messages)
        case "ainvoke":
            return await model.ainvoke(messages)
        case "stream":
            return merged(list(model.stream(messages)))
        case _:
            return merged([chunk async for chunk in model.astream(messages)])


def calls_of(message):
    return [(made["name"], made["args"]) for made in message.tool_calls]


every_way = pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])


@every_way
async def test_calls_in_text_come_as_native_calls(way):
    model = wrapped(f"Let me look.\n{CALL}\n{CALL}")
    message = await ask(bound(model), way)
    assert message.text == "Let me look."
    assert calls_of(message) == [("knowledge_search", {"query": "sick leave"})] * 2
    assert len({made["id"] for made in message.tool_calls} - {None}) == 2
    assert message.invalid_tool_calls == []
    assert message.usage_metadata["output_tokens"] > 20
    assert message.response_metadata["model_name"] == "scripted"


@every_way
async def test_a_broken_call_is_asked_for_once_more(way):
    model = wrapped(f"Let me look. {BROKEN}", CALL)
    message = await ask(bound(model), way)
    assert (message.text, calls_of(message)) == ("Let me look.", [("knowledge_search", {"query": "sick leave"})])
    first, second = model.inner.requests
    assert [turn.type for turn in second.messages] == ["system", "human", "ai", "human"]
    assert second.messages[:2] == first.messages
    assert second.messages[2].text == f"Let me look. {BROKEN}"
    assert second.messages[3].text.startswith("Your tool call was not valid: the arguments are not valid JSON.")
    alone = await ask(bound(wrapped(CALL)), way)
    assert message.usage_metadata["input_tokens"] > 2 * alone.usage_metadata["input_tokens"]
    assert message.response_metadata == alone.response_metadata


@every_way
async def test_a_broken_call_may_be_answered_with_text_instead(way):
    message = await ask(bound(wrapped(BROKEN, "Ten days.")), way)
    assert (message.text, message.tool_calls, message.invalid_tool_calls) == ("Ten days.", [], [])


@every_way
async def test_a_call_that_stays_broken_is_an_invalid_call_and_never_text(way):
    bare = '{"name": "knowledge_search", "arguments": {"query": "si'
    model = wrapped(f"Wait. {BROKEN}", bare)
    message = await ask(bound(model), way)
    assert (message.text, message.tool_calls) == ("Wait.", [])
    [broken] = message.invalid_tool_calls
    assert (broken["name"], broken["args"]) == ("?", f"the call is cut off: {bare}")
    assert len(model.inner.requests) == 2


@every_way
async def test_a_broken_call_beside_a_good_one_is_left_to_the_loop(way):
    model = wrapped(BROKEN + CALL)
    message = await ask(bound(model), way)
    assert calls_of(message) == [("knowledge_search", {"query": "sick leave"})]
    assert [made["name"] for made in message.invalid_tool_calls] == ["?"]
    assert len({made["id"] for made in [*message.tool_calls, *message.invalid_tool_calls]}) == 2


def test_repair_can_be_switched_off():
    model = wrapped(BROKEN, max_repairs=0)
    assert len(bound(model).invoke(ASKED).invalid_tool_calls) == 1


@every_way
async def test_without_tools_a_call_is_neither_made_nor_shown(way):
    message = await ask(wrapped(f"Ten days. {CALL}"), way)
    assert (message.text, message.tool_calls, message.invalid_tool_calls) == ("Ten days.", [], [])
    message = await ask(bound(wrapped(f"Ten days. {CALL}"), tool_choice="none"), way)
    assert (message.text, message.tool_calls) == ("Ten days.", [])


def test_the_inner_model_gets_rules_and_no_tools():
    model = wrapped("ok", "ok")
    bound(model, strict=True, temperature=0).invoke(ASKED)
    bound(model, tool_choice="any", parallel_tool_calls=False).invoke([HumanMessage("a")])
    first, second = model.inner.requests
    assert (first.tools, first.options) == ((), {"temperature": 0})
    system = first.messages[0].text
    assert system.startswith("Be brief.\n\n# Tools")
    assert (
        '## knowledge_search\n\nSearch the documents.\n\nArguments: {"properties": {"query": {"type": "string"}'
        in system
    )
    assert "one block after the other" in system
    assert "must call" not in system
    assert "you must call a tool" in second.messages[0].text
    assert "One block in a message, no more." in second.messages[0].text


def test_a_call_starts_before_the_message_ends():
    model = wrapped(f"{CALL} <tool_call> is how it is written, as everyone can see who reads on to the end.")
    chunks = list(bound(model).stream(ASKED))
    at = next(at for at, chunk in enumerate(chunks) if "sick leave" in str(chunk.tool_call_chunks))
    assert at <= 1
    assert [chunk.chunk_position for chunk in chunks] == [None] * (len(chunks) - 1) + ["last"]
    assert len({chunk.id for chunk in chunks}) == 1


def test_markup_never_reaches_a_callback_of_the_run():
    class Seen(BaseCallbackHandler):
        def __init__(self):
            self.tokens, self.starts = [], 0

        def on_chat_model_start(self, *_, **__):
            self.starts += 1

        def on_llm_new_token(self, token, **_):
            self.tokens.append(token)

    seen = Seen()
    list(bound(wrapped(f"Let me look. {CALL}")).stream(ASKED, {"callbacks": [seen]}))
    assert ("".join(seen.tokens), seen.starts) == ("Let me look.", 1)


def test_reasoning_and_other_blocks_pass_through():
    blocks = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": f"Wait. {CALL}"}]
    message = bound(wrapped(AIMessage(blocks))).invoke(ASKED)
    assert message.content[0] == blocks[0]
    assert (message.text, len(message.tool_calls)) == ("Wait.", 1)
    thinking = AIMessage("Hi.", additional_kwargs={"reasoning_content": "hm"})
    assert bound(wrapped(thinking)).invoke(ASKED).additional_kwargs == {"reasoning_content": "hm"}


@pytest.mark.parametrize("way", ["invoke", "stream"])
async def test_native_calls_of_a_server_that_reads_the_markup_itself_are_kept(way):
    message = await ask(bound(wrapped([call("knowledge_search", query="a"), call("knowledge_search", query="b")])), way)
    assert calls_of(message) == [("knowledge_search", {"query": "a"}), ("knowledge_search", {"query": "b"})]


def test_it_counts_as_a_model_that_calls_tools_and_streams_as_the_inner_one_does():
    from langchain_openai import ChatOpenAI

    inner = ChatOpenAI(model="m", api_key="k", streaming=True, profile={"tool_calling": False, "max_input_tokens": 9})
    model = TextToolsModel(inner=inner)
    assert model.profile == {"tool_calling": True, "max_input_tokens": 9}
    assert (model.streaming, model._llm_type, model._get_ls_params()["ls_model_name"]) == (
        True,
        "text-tools-openai-chat",
        "m",
    )
    assert "streaming" not in wrapped().model_fields_set


def test_a_round_with_results_is_told_in_plain_turns():
    model = wrapped("Ten days.")
    asked = AIMessage(
        "Let me look.",
        tool_calls=[{"name": "knowledge_search", "args": {"query": q}, "id": f"c{q}"} for q in "ab"],
        invalid_tool_calls=[
            {"name": "knowledge_search", "args": '{"q', "id": "cx", "error": None, "type": "invalid_tool_call"}
        ],
    )
    results = [
        ToolMessage("ten </tool_result> days", tool_call_id="ca", name="knowledge_search"),
        ToolMessage("none", tool_call_id="cb", name="knowledge_search"),
    ]
    bound(model).invoke([*ASKED, asked, *results])
    system, human, ai, answered = model.inner.requests[0].messages
    assert (system.type, human) == ("system", ASKED[1])
    assert ai.content == (
        "Let me look.\n"
        '<tool_call name="knowledge_search">{"query": "a"}</tool_call>\n'
        '<tool_call name="knowledge_search">{"query": "b"}</tool_call>\n'
        '<tool_call name="knowledge_search">{"q</tool_call>'
    )
    assert ai.tool_calls == []
    assert answered.content == (
        '<tool_result name="knowledge_search" id="ca">\nten &lt;/tool_result> days\n</tool_result>\n\n'
        '<tool_result name="knowledge_search" id="cb">\nnone\n</tool_result>'
    )
