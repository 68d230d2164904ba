from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.documents import Chunk
from graphrag_agent.retrieval.search.evidence import Distinct, select_distinct

PARAGRAPH = (
    "The gateway collects readings from all sensors of a building once a minute and sends them to the server over an "
    "encrypted connection. Where the connection is down it keeps the readings in its own storage and sends them later, "
    "oldest first, so that the history of a building stays complete. The storage is written in turn, which spares the "
    "cells, and a damaged cell is left out from then on without any loss for those that were written before it failed."
)
ABSATZ = "产品保修期自收货之日起计算，保修范围包括电源、主板和传感器接口，人为损坏由用户承担费用。" * 3


def chunk(name: str, text: str, heading: str = "") -> Chunk:
    return Chunk(name, "d", "acme", "c", (), f"{name}.md", "md", name, heading, None, 0, text, 0, len(text))


def distinct(*texts: str, limit: int = 9) -> Distinct:
    chunks = {str(at): chunk(str(at), text) for at, text in enumerate(texts)}
    return select_distinct([(name, 1.0) for name in chunks], chunks, limit)


def names(found: Distinct) -> list[str]:
    return [name for name, _ in found.ranking]


def test_a_text_that_comes_again_in_other_case_and_blanks_is_dropped_as_the_better_ones_duplicate() -> None:
    found = distinct("Refunds are paid.", "Other text", " refunds\u00a0ARE\n paid. ")
    assert found == Distinct([("0", 1.0), ("1", 1.0)], {"2": "0"})


def test_the_next_ones_move_up_until_the_limit_and_nothing_after_it_is_looked_at() -> None:
    found = distinct("a", "a", "b", "a", "c", "a", limit=3)
    assert (names(found), found.duplicates) == (["0", "2", "4"], {"1": "0", "3": "0"})


def test_one_changed_word_in_a_long_passage_makes_no_new_passage() -> None:
    assert distinct(PARAGRAPH, PARAGRAPH.replace("sensors", "meters")).duplicates == {"1": "0"}
    assert distinct(ABSATZ, ABSATZ.replace("主板", "底板", 1)).duplicates == {"1": "0"}
    assert distinct(f"USB{ABSATZ}", f"USB{ABSATZ.replace('主板', '底板', 1)}").duplicates == {"1": "0"}


def test_one_changed_word_in_a_short_passage_does() -> None:
    assert distinct("The pump A is red and loud.", "The pump B is red and loud.").duplicates == {}


def test_signs_without_words_are_texts_too() -> None:
    assert distinct("→", "←", "\U0001f642", "___", "", "→ ").duplicates == {"5": "0"}


def test_another_number_or_a_negation_is_another_fact_however_long_the_passage() -> None:
    for first, second in [
        ("once a minute", "not once a minute"),
        ("sensors", "sensors of type E-1042"),
        ("all sensors", "12 sensors"),
    ]:
        assert distinct(PARAGRAPH, PARAGRAPH.replace(first, second)).duplicates == {}
    assert distinct(f"{PARAGRAPH} ERR_CONN_RESET", f"{PARAGRAPH} ERR_CONN_REFUSED").duplicates == {}
    assert distinct(f"{PARAGRAPH} ann@example.org", f"{PARAGRAPH} bob@example.org").duplicates == {}
    assert distinct(f"{PARAGRAPH} -5 °C", f"{PARAGRAPH} 5 °C").duplicates == {}
    assert distinct(f"{PARAGRAPH} From 5 to 10.", f"{PARAGRAPH} From 10 to 5.").duplicates == {}
    assert distinct(ABSATZ, ABSATZ.replace("包括", "不包括", 1)).duplicates == {}


def test_a_text_of_one_endless_word_is_compared_at_once() -> None:
    long = "a" * 100_000
    began = time.process_time()
    assert distinct(f"{long}_ 1{'.' * 50_000}", f"{long}_ 1{'-' * 50_000}", f"{long}_", "@" * 100_000).duplicates == {}
    assert time.process_time() - began < 2


def test_equal_texts_under_different_headings_are_about_different_things() -> None:
    chunks = {name: chunk(name, "Two years.", f"{name} > Warranty") for name in ("Pump", "Gate")}
    assert names(select_distinct([("Pump", 2.0), ("Gate", 1.0)], chunks, 5)) == ["Pump", "Gate"]


@given(st.lists(st.text("ab 1\n泵A-", max_size=8), max_size=12), st.integers(1, 12))
def test_what_is_kept_is_a_prefix_wise_choice_without_two_of_a_kind(texts: list[str], limit: int) -> None:
    found = distinct(*texts, limit=limit)
    kept = names(found)
    seen = sorted([*kept, *found.duplicates], key=int)
    assert kept == sorted(kept, key=int)
    assert seen == [str(at) for at in range(len(seen))]
    assert len(kept) == limit or len(seen) == len(texts)
    assert all(other in kept and int(other) < int(name) for name, other in found.duplicates.items())
    plain = [" ".join(texts[int(name)].casefold().split()) for name in kept]
    assert len(set(plain)) == len(plain)
    again = select_distinct(found.ranking, {name: chunk(name, texts[int(name)]) for name in kept}, limit)
    assert again == Distinct(found.ranking, {})
