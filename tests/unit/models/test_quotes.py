import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_agent.models.evidence_blocks import EvidenceBlock
from graphrag_agent.models.questions import QuestionPart, split_question
from graphrag_agent.models.quotes import select_quotes


def quotes(question, *texts, heading=""):
    blocks = [EvidenceBlock(f"e{at}", "Handbook", heading, None, text) for at, text in enumerate(texts)]
    (part,) = split_question(question)
    return [(quote.id, quote.text) for quote in select_quotes(part, blocks)]


LEAVE = "Employees get 10 days of sick leave a year. However, contractors get none. Tell your lead by 9:30."


def test_the_sentence_that_answers_comes_with_its_exception():
    assert quotes("How many days of sick leave do employees get?", "Parking is free.", LEAVE) == [
        ("e1", "Employees get 10 days of sick leave a year."),
        ("e1", "However, contractors get none."),
    ]


def test_chinese_and_russian_conditions_come_too():
    assert quotes("员工每年有几天病假？", "员工每年有十天病假。但试用期员工除外。食堂在一楼。") == [
        ("e0", "员工每年有十天病假。"),
        ("e0", "但试用期员工除外。"),
    ]
    text = "Сотрудникам положено 28 дней отпуска. За исключением стажёров. Столовая внизу."
    assert quotes("Сколько дней отпуска у сотрудников?", text) == [
        ("e0", "Сотрудникам положено 28 дней отпуска."),
        ("e0", "За исключением стажёров."),
    ]


def test_nothing_is_quoted_where_too_little_is_shared():
    assert quotes("What is the boiling point of tungsten in a vacuum?", LEAVE, "The vacuum cleaner is in room 4.") == []


def test_a_table_row_counts_as_a_sentence():
    table = "Plan: Basic; Price: 10 EUR; Seats: 1\nPlan: Pro; Price: 25 EUR; Seats: 5"
    assert quotes("What is the price of the Pro plan?", table)[0] == ("e0", "Plan: Pro; Price: 25 EUR; Seats: 5")


def test_a_padded_row_is_quoted_with_single_blanks():
    table = "| Plan       | Monthly |\n|---|---|\n| Basic plan |  price 10 EUR |\n| Pro plan   | price  25 EUR |"
    assert quotes("What is the price of the Pro plan?", table)[0] == ("e0", "| Pro plan | price 25 EUR |")


def test_a_lead_in_brings_its_list():
    text = "You may use sick leave for:\n\n- illness\n- medical appointments\n\nThe office is closed on Sunday."
    assert quotes("What may I use sick leave for?", text) == [
        ("e0", "You may use sick leave for:\n\n- illness\n- medical appointments")
    ]


def test_a_question_in_the_evidence_leads_to_its_answer():
    text = (
        "How do I reset my password?\nOpen the portal and choose Forgot.\n\nWhere is the canteen?\nOn the first floor."
    )
    assert quotes("How do I reset my password?", text) == [("e0", "Open the portal and choose Forgot.")]


def test_headings_lend_their_words_but_are_not_quoted():
    text = "# Sick leave\n\nEmployees get 10 days a year.\n\n# Parking\n\nEmployees get one place."
    assert quotes("How many days of sick leave do employees get?", text) == [("e0", "Employees get 10 days a year.")]


def test_a_sentence_in_two_overlapping_chunks_is_quoted_once():
    assert quotes("sick leave days for employees", LEAVE, LEAVE)[0][0] == "e0"
    assert len(quotes("sick leave days for employees", LEAVE, LEAVE)) == 2


def test_words_in_focus_decide():
    blocks = [
        EvidenceBlock("a", "", "", None, "Employees get 10 sick days a year for illness."),
        EvidenceBlock("b", "", "", None, "Contractors are paid by the hour only, sick or not."),
    ]
    part = QuestionPart("contractors sick days employees get year", "contractors")
    assert next(quote.id for quote in select_quotes(part, blocks)) == "b"


def test_at_most_three_sentences_are_chosen():
    text = " ".join(f"Sick leave rule {number} holds for employees." for number in range(9))
    assert len(quotes("sick leave rule for employees", text)) == 3


words = st.lists(
    st.sampled_from(["sick", "leave", "ten days", "病假", "отпуск", ".", "!", "\n", "\n- ", ": ", "。", "But"])
)
texts = st.lists(words.map(" ".join), max_size=4)


@settings(max_examples=60, deadline=None)
@given(texts, st.sampled_from(["How many days of sick leave?", "病假有几天？", "Сколько дней отпуска?"]))
def test_quotes_are_copied_from_the_block_that_they_name(texts, question):
    for id_, text in quotes(question, *texts):
        block = texts[int(id_.removeprefix("e"))]
        assert " ".join(text.split()) in " ".join(block.split()), "only a soft line break may differ"


@pytest.mark.parametrize("question", ["天 是 不" + "是 什 么" * 8_000, "how many " + "一" * 20_000])
def test_neither_a_long_question_nor_a_long_number_takes_time(question):
    block = EvidenceBlock("a2bcd", "", "", None, f"how many {'一' * 20_000} b.")
    began = time.process_time()
    select_quotes(QuestionPart(question, question), [block])
    assert time.process_time() - began < 2
