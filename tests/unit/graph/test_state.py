"""The reducer of the two message channels."""

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from graphrag_agent import build_rag_graph
from graphrag_agent.graph.state import merge_messages


def texts(messages: list[BaseMessage]) -> list[str]:
    return [message.text for message in messages]


def test_a_known_id_replaces_in_place_and_a_new_one_is_appended():
    merged = merge_messages([HumanMessage("q", id="1"), AIMessage("old", id="2")], [[AIMessage("new", id="2")]])
    assert texts(merge_messages(merged, [HumanMessage("next", id="3")])) == ["q", "new", "next"]


def test_messages_can_be_removed_one_by_one_or_all():
    state = [HumanMessage("q", id="1"), AIMessage("a", id="2")]
    assert texts(merge_messages(state, [[RemoveMessage(id="1")]])) == ["a"]
    assert merge_messages(state, [[RemoveMessage(id=REMOVE_ALL_MESSAGES)]]) == []


def test_a_missing_id_is_the_same_at_every_replay():
    writes = [[("user", "hi")], [{"role": "user", "content": "hi"}], [AIMessage("a")]]
    first, second = merge_messages([], writes), merge_messages([], writes)
    assert [message.id for message in first] == [message.id for message in second]
    assert len({message.id for message in first}) == 3


messages = st.one_of(
    st.builds(HumanMessage, st.text(max_size=3), id=st.one_of(st.none(), st.sampled_from("abc"))),
    st.builds(AIMessage, st.text(max_size=3), id=st.one_of(st.none(), st.sampled_from("abc"))),
    st.sampled_from("abc").map(lambda id_: RemoveMessage(id=id_)),
)
batches = st.lists(st.lists(messages, max_size=3), max_size=5)


@given(batches, batches)
def test_writes_may_be_replayed_in_any_grouping(first: list[list[BaseMessage]], second: list[list[BaseMessage]]):
    assert merge_messages(merge_messages([], first), second) == merge_messages([], first + second)


def test_what_goes_in_and_comes_out_has_a_schema_for_forms():
    graph = build_rag_graph(model="offline")
    given, told = graph.get_input_jsonschema(), graph.get_output_jsonschema()
    assert (list(given["properties"]), given["required"]) == (["messages"], ["messages"])
    assert list(told["properties"]) == ["messages", "outcome"]
