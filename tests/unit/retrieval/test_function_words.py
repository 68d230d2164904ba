"""Which words of a query say nothing of its subject, and what they weigh."""

import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.retrieval.function_words import FUNCTION_WEIGHT, split_function_words, weigh_terms
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from graphrag_agent.retrieval.tokenizer import count_terms


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("What is the population of Grenada?", "population Grenada?"),
        ("Wie lange gilt die Garantie des Werks?", "lange gilt Garantie Werks?"),
        ("Сколько дней отпуска и кто его утверждает?", "дней отпуска его утверждает?"),
        ("Quelle est l'origine de la ville?", "origine ville?"),
        ("¿Cuál es la capital de los incas?", "¿ capital incas?"),
        ("水泵的保修期是多少？", "水泵 保修期 ?"),
        ("What’s in the box, and why isn't it open?", "box, open?"),
        ("Ｗｈａｔ is a widget?", "widget?"),
        ("WHAT DOES THE MANUAL SAY", "MANUAL SAY"),
    ],
)
def test_the_rest_of_a_question_is_its_subject(query: str, left: str) -> None:
    assert split_function_words(query).rest.split() == left.split()


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("When did the war end?", "war"),  # German: was
        ("How large is the die of a CPU?", "die"),  # German: the
        ("Who studied at MIT in 1990?", "MIT"),  # German: with
        ("Cours de l'or et de l'argent", "or"),  # English: or
        ("What did the WHO say?", "WHO"),
        ("Is there an IT policy?", "IT"),
        ("How much vitamin A is in liver?", "A"),
        ("C++ or C#, which is faster?", "C++"),
        ("IT部门的电话是多少？", "IT"),
        ("补充维生素A 有什么好处？", "A"),
        ("US GDP IN 2023", "US"),
        ("What are the public holidays in May?", "May"),
        ("Who is Will Smith?", "Will"),
        ("How large is Los Angeles?", "Los"),
        ("What is the WHO’s budget?", "WHO’s"),
        ("Combien a coûté l'or en 2020 ?", "or"),
        ("When did Otto von Bismarck start the war?", "war"),
        ("Which force is van der Waals'? He saw the war.", "war."),
        ("What is vitamin D's role?", "D's"),
    ],
)
def test_a_word_that_means_something_here_is_kept(query: str, kept: str) -> None:
    assert (
        kept
        in split_function_words(query)
        .rest.replace(",", " ")
        .replace("?", " ")
        .replace("部门", " ")
        .replace("补充维生素", " ")
        .split()
    )


def test_the_same_word_is_dropped_in_a_sentence_of_its_language() -> None:
    assert "war" not in split_function_words("Wann war die Messe und wie teuer?").rest.split()
    assert "or" not in split_function_words("Is it silver or gold?").rest.split()


def test_long_queries_cost_linear_time() -> None:
    for part in ("What Is the War of Otto? ", "l'or ", "a.'b ", "是什么IT "):

        def seconds(text: str) -> float:
            began = time.thread_time()
            split_function_words(text)
            return time.thread_time() - began

        # the best of some, for a collection of garbage may fall into one
        assert min(seconds(part * 8_000) for _ in range(3)) < 12 * seconds(part * 2_000) + 0.2


def test_function_words_weigh_little_and_all_others_as_often_as_they_are_said() -> None:
    assert weigh_terms("What is the best pump of the pumps?") == {
        **dict.fromkeys(["what", "is", "of"], FUNCTION_WEIGHT),
        "the": 2 * FUNCTION_WEIGHT,
        "best": 1.0,
        "pump": 2.0,
    }


@pytest.mark.parametrize("query", ["To be or not to be", "The Who", "who are we", "是什么", "Was ist das?"])
def test_a_query_of_function_words_alone_keeps_their_weight(query: str) -> None:
    assert weigh_terms(query.lower()) == count_terms(query)


def test_a_term_that_is_said_as_a_word_of_its_own_too_is_none() -> None:
    assert weigh_terms("does a doe eat")["doe"] == 2.0  # Snowball makes "doe" of both
    assert weigh_terms("目的是什么")["目的"] == 1.0  # 的 alone is a function word


@given(
    st.text(max_size=200)
    | st.lists(st.sampled_from(["what", "is", "war", "die", "or", "WHO", "A", "是什么", "的", "l'or"])).map(" ".join)
)
def test_no_term_of_any_query_is_lost_or_weighs_nothing(query: str) -> None:
    counts, weights = count_terms(query), weigh_terms(query)
    assert weights.keys() == counts.keys()
    assert all(weights[term] in (count, count * FUNCTION_WEIGHT) for term, count in counts.items())
    assert not counts or max(weights.values()) >= 1.0


async def test_a_question_finds_the_table_row_among_prose_that_shares_its_question_words(tmp_path: Path) -> None:
    rows = [f"Country {number},{number}000" for number in range(40)]
    _write(tmp_path / "countries.csv", ["Country,Population", *rows, "Grenada,111000"])
    _write(tmp_path / "prose.md", ["# Notes", "", "What is the meaning of the word? It is what the author says of it."])
    async with KnowledgeBase.open(tmp_path / "kb", embedder=None) as knowledge:
        await knowledge.aingest(tmp_path)
        result = await knowledge.asearch("What is the population of Grenada?")
    assert result.hits[0].chunk.source.endswith("countries.csv")
    assert "Grenada" in result.hits[0].chunk.text


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
