"""Full copies of a thread are decoded once, and are what LangGraph's own serializer gives."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from graphrag_agent.persistence import kept_messages
from graphrag_agent.persistence.kept_messages import KeptMessages, build_serializer


def encoded(number: int = 1, *, length: int = 100) -> tuple[str, bytes]:
    messages = [m for n in range(length) for m in (HumanMessage(f"{number} q{n}"), AIMessage(f"{number} a{n} " * 20))]
    return JsonPlusSerializer().dumps_typed({"v": 1, "channel_values": {"messages": _DeltaSnapshot(messages)}})


def messages_of(value: Any) -> list[Any]:
    return value["channel_values"]["messages"].value


def test_what_is_read_is_what_langgraph_reads():
    data, ours = encoded(), KeptMessages()
    plain = JsonPlusSerializer().loads_typed(data)
    assert ours.loads_typed(data) == plain
    assert ours.loads_typed(data) == plain, "and the second time too"
    assert ours.loads_typed(ours.dumps_typed([1, {"a": AIMessage("x")}])) == [1, {"a": AIMessage("x")}]
    assert ours.loads_typed(("null", b"")) is None


def test_the_second_reader_gets_the_same_messages_in_a_list_of_its_own():
    data, ours = encoded(), KeptMessages()
    first, second = messages_of(ours.loads_typed(data)), messages_of(ours.loads_typed(data))
    third = messages_of(ours.loads_typed(data))
    assert second[0] is third[0], "decoded once"
    second.clear()
    first.append("x")
    assert len(messages_of(ours.loads_typed(data))) == 200


def test_what_was_written_after_a_full_copy_is_decoded_once_too():
    ours, written = KeptMessages(), [HumanMessage("What holds?"), AIMessage("Ten days.", id="a")]
    data = JsonPlusSerializer().dumps_typed(written)
    first, second = ours.loads_typed(data), ours.loads_typed(data)
    assert first == second == written
    assert [one is other for one, other in zip(first, second, strict=True)] == [True, True]
    other = ours.loads_typed(JsonPlusSerializer().dumps_typed([AIMessage("Ten days.", id="b")]))
    assert (other[0].id, first[1].id) == ("b", "a")


def test_the_least_recently_used_goes_when_there_is_too_much(monkeypatch: pytest.MonkeyPatch):
    data = [encoded(number) for number in range(3)]
    monkeypatch.setattr(kept_messages, "MAX_BYTES", int(2.5 * len(data[0][1])))
    ours = KeptMessages()
    for at in (0, 1, 0, 2):
        ours.loads_typed(data[at])
    assert len(ours._kept) == 2
    kept = messages_of(ours.loads_typed(data[0]))[0]
    assert messages_of(ours.loads_typed(data[0]))[0] is kept, "0 was used after 1"


def test_a_langgraph_that_has_changed_gets_its_own_serializer(monkeypatch: pytest.MonkeyPatch):
    assert type(build_serializer()) is KeptMessages
    monkeypatch.delattr(jsonplus, "EXT_DELTA_SNAPSHOT")
    assert type(build_serializer()) is JsonPlusSerializer
