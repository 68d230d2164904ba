"""Texts cut between sentences, and never between a rule and its exception."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_agent.models.packing import cut_to_sentences, limits_the_last, sentence_end
from graphrag_agent.models.sentences import split_sentences
from graphrag_agent.token_estimate import estimate_tokens

RULES = {
    "en": ("Refunds take two weeks.", "Gift cards are excluded unless the shop closed.", "Send the form by post."),
    "en however": ("Refunds take two weeks.", "However, gift cards are never refunded.", "Send the form by post."),
    "en only if": ("You may leave early.", "Only if your manager agrees.", "The doors close at eight."),
    "de": ("Die Garantie gilt zwei Jahre.", "Ausgenommen sind Akkus.", "Den Beleg bitte aufheben."),
    "ru": ("Отпуск длится месяц.", "Но не для стажёров.", "Заявление подают заранее."),
    "ru кроме": ("Вход свободный.", "Кроме понедельника.", "Касса работает до шести."),
    "ru если": ("Вход свободный.", "Если есть билет.", "Касса работает до шести."),
    "zh": ("员工可以远程办公。", "除非经理不同意。", "每天九点开始工作。"),
    "zh 但": ("员工可以远程办公。", "但每周最多三天。", "每天九点开始工作。"),
    "ja": ("返品できます。", "ただし、食品はできません。", "送料は無料です。"),
    "ar": ("الدخول مجاني.", "إلا يوم الاثنين.", "تغلق الأبواب في الثامنة."),
}


@pytest.mark.parametrize("language", RULES)
def test_an_exception_stays_with_what_it_limits(language: str) -> None:
    rule, exception, more = RULES[language]
    opening = "这是开头。" if language.startswith(("zh", "ja")) else "This is the beginning."
    blank = "" if language.startswith(("zh", "ja")) else " "
    text = blank.join([opening, rule, exception, more])
    upto_rule = estimate_tokens(blank.join([opening, rule]))
    assert cut_to_sentences(text, upto_rule) == (opening, 3)
    upto_exception = estimate_tokens(blank.join([opening, rule, exception]))
    assert cut_to_sentences(text, upto_exception) == (blank.join([opening, rule, exception]), 1)


def test_an_ordinary_sentence_is_left_out_alone() -> None:
    assert cut_to_sentences("The pump hums. The gate is shut.", 5) == ("The pump hums.", 1)
    assert cut_to_sentences("The pump hums.", 100) == ("The pump hums.", 0)


@pytest.mark.parametrize(
    ("text", "most", "kept"),
    [
        ("It hums. It stops. It rusts.", 20, "It hums. It stops."),
        ("It hums. It stops. Except on Sundays.", 20, "It hums."),
        ("It stops. Except on Sundays.", 20, "It stops."),
        ("It hums on and on", 7, "It hums"),
        ("It hums", 70, "It hums"),
        ("It hums.\n```", 70, "It hums.\n```"),
    ],
)
def test_a_cut_by_characters_always_leaves_something(text: str, most: int, kept: str) -> None:
    assert text[: sentence_end(text, most)] == kept


def test_where_not_even_the_first_ones_fit_nothing_is_left() -> None:
    assert cut_to_sentences("The pump hums loudly, day and night. Except on Sundays.", 12) == ("", 2)


def test_a_lead_in_is_not_left_hanging_and_a_list_of_exceptions_is_whole() -> None:
    text = (
        "Bring a form. It is free.\nEveryone pays, except:\n- children\n- students\n- guests\n\nThe desk opens at nine."
    )
    whole_list = text[: text.index("\n\n")]
    assert cut_to_sentences(text, estimate_tokens(whole_list)).text == whole_list
    assert cut_to_sentences(text, estimate_tokens(whole_list) - 2).text == "Bring a form."
    plain = "Bring these:\n- a form\n- a photograph of yourself"
    assert cut_to_sentences(plain, estimate_tokens("Bring these:\n- a form")).text == "Bring these:\n- a form"
    assert cut_to_sentences(plain, estimate_tokens("Bring these:")).text == ""


SENTENCES = st.sampled_from([sentence for rule in RULES.values() for sentence in rule] + ["A list follows:", "Go on."])


@settings(max_examples=200)
@given(st.lists(SENTENCES, min_size=1, max_size=12), st.sampled_from([" ", "\n", "\n\n", "\n- "]), st.integers(0, 120))
def test_a_cut_is_the_longest_beginning_that_parts_nothing(parts: list[str], glue: str, limit: int) -> None:
    text = glue.join(parts)
    kept, left_out = cut_to_sentences(text, limit)
    assert text.startswith(kept)
    assert estimate_tokens(kept) <= limit
    known = split_sentences(text)
    ends = [sentence.end for sentence in known]
    assert kept == text or len(kept) in {0, *ends}
    if kept != text:
        assert left_out == sum(end > len(kept) for end in ends) > 0
        if kept:
            following = known[ends.index(len(kept)) + 1]
            assert not limits_the_last(following.text)
            assert not known[ends.index(len(kept))].is_lead_in


@given(st.text(max_size=300), st.integers(0, 60))
def test_any_text_is_cut_within_the_limit(text: str, limit: int) -> None:
    kept, left_out = cut_to_sentences(text, limit)
    assert text.startswith(kept)
    assert estimate_tokens(kept) <= limit
    assert left_out == 0 or kept != text
