from graphrag_agent.models.openai_compatible.tool_calls import Call, read_calls
from graphrag_agent.whole_characters import whole_characters


def test_halves_of_a_character_are_joined_or_replaced():
    assert whole_characters("a \ud83d\ude00 b") == "a 😀 b"
    assert whole_characters("a \ud83d b\ude00") == "a � b�"
    text = "ten дней 十天 😀"
    assert whole_characters(text) is text


def test_arguments_with_half_a_character_can_be_sent_back():
    call = Call(0, "1", "search", ['{"query": ["sick \\ud83d", "\\ud83d\\ude00", "й"]}'])
    assert read_calls([call])[0][0]["args"] == {"query": ["sick �", "😀", "й"]}
