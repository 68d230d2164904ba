"""Which sentences say most of a text."""

from graphrag_agent.models.key_sentences import select_key_sentences

TEXT = (
    "# Pumps\n\nThe pump needs a new seal every year. What is a seal? The seal of the pump is made of rubber. "
    "See below. Rubber seals of pumps wear out in a year. Order:\n\n- the paint is blue and shines"
)


def chosen(count: int, **options: str) -> list[str]:
    return [item.sentence.text for item in select_key_sentences([TEXT], count, **options)]


def test_the_most_frequent_words_choose_and_the_sentences_keep_their_order() -> None:
    assert chosen(1) == ["The pump needs a new seal every year."]
    assert chosen(2) == ["The pump needs a new seal every year.", "Rubber seals of pumps wear out in a year."]


def test_headings_questions_and_lead_ins_are_no_sentences_to_quote() -> None:
    assert not {"Pumps", "What is a seal?", "Order:", "See below."} & set(chosen(9))


def test_a_focus_chooses_those_that_have_its_words_and_none_where_nobody_has() -> None:
    assert chosen(1, focus="paint colour") == ["the paint is blue and shines"]
    assert chosen(3, focus="bananas") == []


def test_several_texts_are_told_apart() -> None:
    found = select_key_sentences(["Rain falls on the northern hills.", "Rain falls on the southern plains."], 2)
    assert [(item.text_number, item.sentence.start) for item in found] == [(0, 0), (1, 0)]


def test_a_text_of_short_sentences_has_them_chosen_all_the_same() -> None:
    assert [item.sentence.text for item in select_key_sentences(["It rains. Stay in."], 1)] == ["It rains."]
    assert select_key_sentences(["", " ... "], 3) == []
