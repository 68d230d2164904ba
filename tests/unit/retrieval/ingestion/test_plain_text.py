import pytest

from graphrag_agent.retrieval.ingestion.parsing.plain_text import parse_plain_text


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_lines_in_capitals_that_stand_alone_are_headings(line_end: str) -> None:
    text = "NOTES\n\nIntro.\n\nПЕРВЫЙ ДЕНЬ\n\nCome at 9.\nSHOUTED inside\n\nNOT THIS ONE.\n\nend".replace(
        "\n", line_end
    )
    parsed = parse_plain_text(text.encode(), "Stem")
    assert parsed.text == text
    found = [(s.kind, s.heading, text[s.start : s.end].split()[0]) for s in parsed.sections]
    assert found == [
        ("heading", "NOTES", "NOTES"),
        ("prose", "NOTES", "Intro."),
        ("heading", "ПЕРВЫЙ ДЕНЬ", "ПЕРВЫЙ"),
        ("prose", "ПЕРВЫЙ ДЕНЬ", "Come"),
    ]


def test_chinese_lines_have_no_capitals() -> None:
    assert [s.kind for s in parse_plain_text("第一章\n\n内容。".encode(), "Stem").sections] == ["prose"]
