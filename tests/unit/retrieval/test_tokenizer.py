import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_agent.retrieval.tokenizer import count_terms, tokenize


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Running pumps", ["run", "pump"]),
        ("насосы Ёлка ёлками", ["насос", "елк", "елк"]),
        ("控制器", ["控", "制", "器", "控制", "制器"]),
        ("サーバー", ["サ", "ー", "バ", "ー", "サー", "ーバ", "バー"]),
        ("사용자", ["사", "용", "자", "사용", "용자"]),
        ("مُحَمَّد الكتاب", ["محمد", "كتاب"]),
        ("हिन्दी किताबें", ["हिन्द", "किताब"]),
        ("E-1042", ["e-1042", "e", "1042"]),
        ("E–1042 E‑1042", ["e-1042", "e", "1042"] * 2),
        ("🚀Go 👍🏽👍", ["🚀", "go", "👍", "👍"]),
        ("SKU-99/A", ["sku-99/a", "sku", "99", "a"]),
        ("v2.1.3", ["v2.1.3", "v2", "1", "3"]),
        ("ERR_CONN_RESET", ["err_conn_reset", "err", "conn", "reset"]),
        ("bob.smith@example.com,", ["bob.smith@example.com", "bob", "smith", "exampl", "com"]),
        ("state-of-the-art", ["state", "of", "the", "art"]),
        ("John's don’t", ["john", "s", "don", "t"]),
        ("1,000.50", ["1,000.50", "1", "000", "50"]),
        ("C++, C# and F#", ["c++", "c", "c#", "c", "and", "f#", "f"]),
        ("故障E-1042的", ["故", "障", "故障", "e-1042", "e", "1042", "的"]),
        ("ﬁle ＡＢＣ１２", ["file", "abc12"]),
        ("co\u00adop\u200beration", ["cooper"]),
        ("broken\ud800 half", ["broken", "half"]),
        (" … -- _ ", []),
        ("", []),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_text_becomes_terms(text: str, terms: list[str]) -> None:
    assert tokenize(text) == terms


def test_terms_are_counted() -> None:
    assert count_terms("pump, Pumps and E-7 e-7") == {"pump": 2, "and": 1, "e-7": 2, "e": 2, "7": 2}


def test_a_very_long_run_is_only_split() -> None:
    assert tokenize("a1/" * 30 + "end") == ["a1"] * 30 + ["end"]


@settings(max_examples=60)
@given(st.text(max_size=60))
def test_the_spelling_of_a_character_changes_nothing(text: str) -> None:
    composed = tokenize(unicodedata.normalize("NFC", text))
    assert tokenize(unicodedata.normalize("NFD", text)) == composed
    assert all(term == term.strip() != "" for term in composed)


def test_threads_do_not_disturb_each_others_stems() -> None:
    words = [f"{stem}ing" for stem in ("walk", "talk", "jump", "look")] * 50
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(tokenize, words))
    assert {word: term for word, [term] in zip(words, found, strict=True)} == {word: word[:-3] for word in words}
