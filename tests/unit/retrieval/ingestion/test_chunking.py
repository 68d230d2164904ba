import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_agent.retrieval.ingestion.chunking import (
    _SENTENCE,
    MAX_HEADING_TOKENS,
    MAX_PASSAGE_TOKENS,
    SMALL_PASSAGE_TOKENS,
    split_document,
)
from graphrag_agent.retrieval.ingestion.parsing import ParsedDocument, Section, find_files, parse_file
from graphrag_agent.retrieval.ingestion.parsing.markdown import parse_markdown
from graphrag_agent.token_estimate import estimate_tokens

HANDBOOK = Path(__file__).parents[4] / "../shared/data/documents/handbook_18f"
MOST_TOKENS = MAX_PASSAGE_TOKENS + SMALL_PASSAGE_TOKENS
SENTENCE = "Meals are paid up to 45 EUR a day, unless the host pays. "
PIECES = [
    "word ",
    "年假。",
    "，",
    "😀",
    "👩‍👩‍👧",
    "é",
    "\r\n",
    "\n\n",
    "# H\n",
    "- a\n",
    "```\n",
    "| a | b |\n",
    "\u3000",
    "x" * 900,
    "中" * 500,
    "\n" * 60,
    "\r\n \t" * 900,
    f"# {'中' * 190}\n",
]


def markdown(text: str) -> ParsedDocument:
    return parse_markdown(text.encode(), "Stem")


def check_exact(parsed: ParsedDocument) -> None:
    covered, position = set(), 0
    for passage in split_document(parsed):
        assert parsed.text[passage.start : passage.end] == passage.text == passage.text.strip() != ""
        assert passage.start >= position
        position = passage.end
        covered.update(range(passage.start, passage.end))
    wanted = {at for section in parsed.sections for at in range(section.start, section.end) if parsed.text[at].strip()}
    assert wanted == {at for at in covered if parsed.text[at].strip()}


def test_a_short_document_is_one_passage_with_its_heading() -> None:
    (passage,) = split_document(markdown("# Leave\r\n\r\nTen days. \r\n"))
    assert (passage.text, passage.start, passage.end, passage.heading) == ("# Leave\r\n\r\nTen days.", 0, 20, "Leave")


def test_headings_go_with_the_text_below_and_end_a_passage() -> None:
    found = [(p.heading, p.text) for p in split_document(markdown("# A\n\n## B\n\none\n\n## C\n\ntwo\n\n## D\n"))]
    assert found == [("A > B", "# A\n\n## B\n\none"), ("A > C", "## C\n\ntwo"), ("A > D", "## D")]


@pytest.mark.parametrize("kind", ["text", "## B", "| a | b |\n| - | - |", "```\ncode\n```"])
@pytest.mark.parametrize("blank", ["\n" * 100, "\r\n" * 3000, " \t\n" * 40_000], ids=["some", "many", "endless"])
def test_a_passage_carries_no_endless_blanks_below_a_heading(blank: str, kind: str) -> None:
    text = f"# Pump warranty\n{blank}{kind}\n"
    found = [(passage.heading.split(" > ")[0], passage.text) for passage in split_document(markdown(text))]
    assert found == [("Pump warranty", "# Pump warranty"), ("Pump warranty", kind)]


def test_a_long_heading_opens_a_full_passage() -> None:
    heading, sentence = f"# {'长' * 190}", "员工每年享有十五天年假。" * 60
    passages = split_document(markdown(f"{heading}\n\n{sentence}"))
    assert passages[0].text.startswith(f"{heading}\n\n员工") and passages[0].text.endswith("。")


def test_hard_wrapped_prose_is_cut_between_sentences() -> None:
    text = (SENTENCE.replace("day, ", "day,\n") * 60).strip()
    passages = split_document(markdown(text))
    assert len(passages) > 2
    assert all(p.text.startswith("Meals") and p.text.endswith("pays.") for p in passages)


def test_chinese_is_cut_after_its_full_stops() -> None:
    passages = split_document(markdown("员工每年享有十五天年假，除非合同另有约定。" * 60))
    assert len(passages) > 2
    assert all(p.text.startswith("员工") and p.text.endswith("。") for p in passages)


SENTENCES = {
    "en": [
        "Meals are paid up to 45 EUR a day, e.g. at a fair.",
        "Dr. Smith (see p. 4 and Fig. 2) pays 3.5 percent; J. Doe pays nothing!",
        "Is that so?",
        'He said "yes."',
        "Nothing ends here…",
    ],
    "zh": [
        "员工每年享有十五天年假，除非合同另有约定。",
        "他说：“可以。”",
        "真的吗？！",
        "费用（含税）为3.5元；其他免费。",
    ],
    "ru": [
        "Сотрудники получают 28 дней отпуска, т. е. четыре недели.",
        "Это так?",
        "См. п. 4 правил и ст. 15 закона им. А. С. Пушкина!",
        "Он сказал: «Да.»",
        "Оплата до 5 тыс. руб. в день, см. рис. 2.",
    ],
    "ja": ["社員は年に十五日の休暇を取得できます。", "本当ですか？", "彼は「はい。」と言った。", "料金は3.5円です！"],
    "ar": ["يحصل الموظفون على خمسة عشر يومًا من الإجازة، ما لم ينص العقد على غير ذلك.", "هل هذا صحيح؟", "نعم!"],
    "ur": ["یہ ایک جملہ ہے۔", "کیا یہ سچ ہے؟"],
    "hi": ["कर्मचारियों को पंद्रह दिन की छुट्टी मिलती है।", "क्या यह सच है?"],
}


@settings(max_examples=25, deadline=None)
@pytest.mark.parametrize("language", SENTENCES)
@given(data=st.data())
def test_no_sentence_is_cut(language: str, data: st.DataObject) -> None:
    blank = data.draw(st.sampled_from(["", "\n"] if language in ("zh", "ja") else [" ", "\n", "\r\n"]))
    some = st.sampled_from(SENTENCES[language])
    chosen = data.draw(st.lists(some, min_size=3, max_size=9)) * data.draw(st.integers(10, 40))
    if blank.strip(" ") and data.draw(st.booleans()):  # hard-wrapped
        chosen = [sentence.replace(" ", blank) for sentence in chosen]
    text = blank.join(chosen)
    ends, position = set(), 0
    for sentence in chosen:
        ends.add(position + len(sentence))
        position += len(sentence) + len(blank)
    for passage in split_document(ParsedDocument(text, "T", "txt", (Section(0, len(text)),))):
        assert passage.end in ends, passage.text[-60:]


@settings(max_examples=500, deadline=None)
@given(st.text(alphabet="。！？｡”」』とを，、.!?…\"' \n\u3000aБ中1", max_size=40))
def test_cuts_after_stops_are_those_from_any_place_in_a_row_of_them(text: str) -> None:
    from_any_place = _SENTENCE.replace("(?<![。！？｡])", "", 1)
    assert from_any_place != _SENTENCE
    spans = [found.span() for found in re.finditer(from_any_place, text)]
    assert [found.span() for found in re.finditer(_SENTENCE, text)] == spans


@pytest.mark.parametrize("end", ["と", "」" * 1000 + "と"], ids=["stops", "stops and brackets"])
def test_a_row_of_stops_that_ends_no_sentence_is_cut_in_linear_time(end: str) -> None:
    text = "。" * 200_000 + end
    started = time.process_time()
    assert len(split_document(ParsedDocument(text, "T", "txt", (Section(0, len(text)),)))) > 100
    assert time.process_time() - started < 10  # a minute where every stop begins a search of its own, else one second


def test_a_sentence_longer_than_a_passage_is_cut_at_clauses_then_words() -> None:
    clauses = "the guest pays for the room and for every meal that the host does not offer; " * 40
    passages = split_document(markdown(clauses))
    assert len(passages) > 2
    assert all(passage.text.endswith("offer;") for passage in passages)
    assert all(passage.text.endswith("word") for passage in split_document(markdown("word " * 900)))


def test_lines_that_begin_with_a_number_or_a_sign_are_no_list_items() -> None:
    sentence = "The rate grows by\n3.5 percent and falls by\n-5 degrees in a\n*very* cold winter. "
    passages = split_document(markdown(sentence * 60))
    assert len(passages) > 2
    assert all(passage.text.endswith("winter.") for passage in passages)


def test_later_rows_of_a_table_stand_under_its_columns() -> None:
    rows = "\n".join(f"| K-{at} | {at} EUR | fits all sizes |" for at in range(120))
    passages = split_document(markdown(f"# Prices\n\n| SKU | Price | Note |\n| --- | ---: | --- |\n{rows}\n\nAfter."))
    assert passages[0].heading == "Prices"
    tables = [passage for passage in passages[1:] if passage.text.startswith("| K-")]
    assert len(tables) == 3
    assert {passage.heading for passage in tables} == {"Prices > SKU | Price | Note"}
    assert passages[-1].heading == "Prices"


def test_tables_are_cut_between_rows_only() -> None:
    rows = [f"SKU: K-{at}; Note: Fits all. Even large ones, e.g. XL." for at in range(80)]
    text = "\n".join(rows)
    parsed = ParsedDocument(text, "Prices", "csv", (Section(0, len(text), kind="table"),))
    assert [line for passage in split_document(parsed) for line in passage.text.split("\n")] == rows


def test_a_fence_that_fits_is_kept_whole() -> None:
    fence = "```\n" + "line of code\n\n" * 50 + "```"
    text = f"# A\n\n{SENTENCE * 10}\n\n{fence}\n\n{SENTENCE * 10}"
    assert any(fence in passage.text for passage in split_document(markdown(text)))


def test_a_small_remainder_joins_its_neighbour() -> None:
    assert len(split_document(markdown(SENTENCE * 18 + "\n\nShort end."))) == 1


def test_pages_are_never_joined() -> None:
    parsed = ParsedDocument("one\n\ntwo", "T", "pdf", (Section(0, 3, page=1), Section(5, 8, page=2)))
    assert [(passage.text, passage.page) for passage in split_document(parsed)] == [("one", 1), ("two", 2)]


def test_what_no_section_covers_stays_out() -> None:
    parsed = ParsedDocument("one SECRET two", "T", "txt", (Section(0, 4), Section(10, 14)))
    assert [passage.text for passage in split_document(parsed)] == ["one", "two"]


def test_text_without_separators_is_cut_by_length_around_joined_emoji() -> None:
    family = "👩\u200d👩\u200d👧"
    passages = split_document(ParsedDocument(family * 900, "T", "txt", (Section(0, len(family) * 900),)))
    assert len(passages) > 3
    assert all(passage.text.replace(family, "") == "" for passage in passages)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_passages_are_exact_and_cover_everything(text: str) -> None:
    parsed = markdown(text)
    check_exact(parsed)
    check_exact(ParsedDocument(text, "T", "txt", (Section(0, len(text)),)))
    assert all(estimate_tokens(p.text) <= MAX_PASSAGE_TOKENS + MAX_HEADING_TOKENS for p in split_document(parsed))


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=60), st.integers(1, 80))
def test_any_text_is_cut_exactly(text: str, times: int) -> None:
    whole = text * times
    parsed = ParsedDocument(whole, "T", "txt", (Section(0, len(whole)),))
    check_exact(parsed)
    assert all(estimate_tokens(passage.text) <= MOST_TOKENS for passage in split_document(parsed))


@pytest.mark.skipif(not HANDBOOK.is_dir(), reason="../shared/data is not laid here")
def test_a_real_handbook_is_cut_exactly() -> None:
    files = find_files([HANDBOOK])
    assert len(files) == 69
    for file in files:
        check_exact(parse_file(file))
