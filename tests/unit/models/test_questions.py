import time

import pytest

from graphrag_agent.models.questions import is_small_talk, split_question


def queries(message, *previous):
    return [part.query for part in split_question(message, previous=previous)]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("What is the sick leave policy?", ["What is the sick leave policy"]),
        (
            "compare sick leave and parental leave for contractors",
            ["sick leave for contractors", "parental leave for contractors"],
        ),
        ("Compare sick and parental leave.", ["sick leave", "parental leave"]),
        ("What's the difference between the Pro plan and the Team plan?", ["Pro plan", "Team plan"]),
        ("Pro plan vs. Team plan", ["Pro plan", "Team plan"]),
        ("How does sick leave differ from parental leave?", ["sick leave", "parental leave"]),
        (
            "Compare the notice period for employees and contractors",
            ["notice period for employees", "notice period for contractors"],
        ),
        ("Compare Basic, Pro and Team plans", ["Basic plans", "Pro plans", "Team plans"]),
        ("What is the notice period? Who approves leave?", ["What is the notice period", "Who approves leave"]),
        (
            "How many sick days do I get and how do I report sickness?",
            ["How many sick days do I get", "how do I report sickness"],
        ),
        ("比较病假和产假的天数", ["病假的天数", "产假的天数"]),
        ("合同工的病假和产假有什么区别？", ["合同工的病假", "合同工的产假"]),
        ("病假有几天？怎么申请产假；谁批准", ["病假有几天", "怎么申请产假", "谁批准"]),
        ("сравни больничный и декретный отпуск", ["больничный отпуск", "декретный отпуск"]),
        ("Чем отличается тариф Про от тарифа Команда?", ["тариф Про", "тарифа Команда"]),
        (
            "В чём разница между отпуском и больничным для подрядчиков?",
            ["отпуском для подрядчиков", "больничным для подрядчиков"],
        ),
        ("Rent? Food? Cars? Pets? Tax?", ["Rent", "Food", "Cars", "Pets"]),
    ],
)
def test_a_message_becomes_one_query_for_each_thing_asked(message, expected):
    assert queries(message) == expected


@pytest.mark.parametrize(
    ("message", "previous", "expected"),
    [
        (
            "And for contractors?",
            ["How many days of sick leave do employees get?"],
            "contractors days sick leave employees",
        ),
        ("а для подрядчиков?", ["Сколько дней отпуска?"], "для подрядчиков дней отпуска"),
        ("那合同工呢？", ["病假有几天？"], "合同工 病假 天"),
        ("How long does it last?", ["What is parental leave?"], "How long does it last parental leave"),
        ("why?", ["What is E-1042?"], "why E-1042"),
    ],
)
def test_an_elliptic_question_takes_the_words_of_the_one_before(message, previous, expected):
    assert queries(message, *previous) == [expected]
    assert queries("What is the refund policy?", *previous) == ["What is the refund policy"]


def test_ellipsis_reaches_over_several_questions():
    assert queries("And interns?", "How many sick days do employees get?", "and contractors?") == [
        "interns contractors sick days employees"
    ]


@pytest.mark.parametrize(
    "message",
    [
        "Hello!",
        "hi",
        "Thanks a lot!",
        "Hello, who are you?",
        "Привет!",
        "спасибо",
        "кто ты?",
        "你好",
        "谢谢！",
        "你是谁？",
        "",
        "?!",
    ],
)
def test_small_talk_asks_for_nothing(message):
    assert is_small_talk(message)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Hi! How many vacation days do I get?", "How many vacation days do I get"),
        ("Hello, what is sick leave?", "what is sick leave"),
        ("你好，病假有几天？", "病假有几天"),
        ("Привет! Сколько дней отпуска?", "Сколько дней отпуска"),
    ],
)
def test_a_greeting_before_a_question_is_left_out(message, expected):
    assert not is_small_talk(message)
    assert queries(message) == [expected]


def test_a_statement_stays_with_its_question():
    assert queries("I am a contractor. How many days off do I get?") == [
        "I am a contractor. How many days off do I get"
    ]


def test_the_focus_of_a_compared_thing_is_its_own_words():
    parts = split_question("compare sick leave and parental leave for contractors")
    assert [part.focus for part in parts] == ["sick leave", "parental leave for contractors"]


@pytest.mark.parametrize(
    "message",
    [
        "compare a" + " " * 1_000 + "b",
        "compare a" + "\u3000\t" * 500 + "b",
        "please " * 24 + "wait",
        "please, " * 24 + "wait",
        "what is the difference" + " " * 19_000 + "of it",
        "你好" + "\n" * 19_000,
        " ".join(f"and for {number}?" for number in range(1_600)),
        "? ".join(map(str, range(3_000))),
    ],
    ids=lambda message: repr(message[:30]),
)
def test_no_message_takes_long_to_take_apart(message: str):
    began = time.process_time()
    split_question(message, previous=[message])
    assert time.process_time() - began < 2


def test_blanks_in_a_row_are_one_blank():
    assert queries("compare  sick \t leave   and\u3000parental leave") == ["sick leave", "parental leave"]
    assert queries("请问比较病假和产假的天数") == ["病假的天数", "产假的天数"]
