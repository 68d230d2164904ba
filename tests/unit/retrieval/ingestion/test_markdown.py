import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_agent.retrieval.ingestion.parsing.markdown import outline, parse_markdown

GUIDE = """---
title: "Leave guide"
questions:
  - people-ops
---
Intro line.

# Leave

## Sick `leave` and [care](x.md)

Call in.

```
# not a heading
```

> ## quoted, no heading either

| Days | Who |
|---|---|
| 10 | all |

Other
-----
Text.
"""


def parts(text: str) -> list[tuple[str, str, str]]:
    return [(s.kind, s.heading, text[s.start : s.end].strip()) for s in outline(text, hides_addresses=True).sections]


def test_sections_follow_headings_and_blocks() -> None:
    parsed = parse_markdown(GUIDE.encode(), "Stem")
    path = "Leave > Sick leave and care"
    assert [(s.kind, s.heading, GUIDE[s.start : s.end].strip()) for s in parsed.sections] == [
        ("prose", "", "Intro line."),
        ("heading", "Leave", "# Leave"),
        ("heading", path, "## Sick `leave` and [care](x.md)"),
        ("prose", path, "Call in."),
        ("code", path, "```\n# not a heading\n```"),
        ("prose", path, "> ## quoted, no heading either"),
        ("table", path, "| Days | Who |\n|---|---|\n| 10 | all |"),
        ("heading", "Leave > Other", "Other\n-----"),
        ("prose", "Leave > Other", "Text."),
    ]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (GUIDE, "Leave guide"),
        ("---\nlayout: page\n---\n# The *first*\n# Second\n", "The first"),
        ("## Only a second level\n", "Stem"),
        ("Just text.", "Stem"),
    ],
)
def test_title_is_front_matter_then_first_h1_then_the_stem(text: str, title: str) -> None:
    assert parse_markdown(text.encode(), "Stem").title == title


def test_text_is_the_file_and_offsets_hold_with_crlf() -> None:
    text = GUIDE.replace("\n", "\r\n")
    parsed = parse_markdown(text.encode(), "Stem")
    assert parsed.text == text
    assert text[parsed.sections[1].start : parsed.sections[1].end] == "# Leave\r\n"


def test_a_rule_at_the_top_is_not_front_matter() -> None:
    assert parts("---\n\nA: text\n\n---\nmore")[0][2].startswith("---")


def test_a_long_underlined_paragraph_is_no_heading() -> None:
    assert parts("word " * 60 + "\n---\n\nnext")[0][0] == "prose"


def test_a_shallower_heading_closes_deeper_ones() -> None:
    headings = [heading for _, heading, _ in parts("# A\n### B\n## C\n# D\n")]
    assert headings == ["A", "A > B", "A > C", "D"]


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="#-=` \t\r\n|>*ab1年é\u2028\x0b😀", max_size=120))
def test_sections_cover_any_text_without_overlap(text: str) -> None:
    position = 0
    for section in outline(text).sections:
        assert position <= section.start < section.end <= len(text)
        assert not text[position : section.start].strip()
        position = section.end
    assert not text[position:].strip()


LINKED = """# Travel

Ask your [official][ao], who is named in the [guide].

[ao]: /travel/faq/#who "Who it is"
[guide]:
  https://example.com/guide
[ao]: /other

## Help

[Note]: this is no link.
[^1]: Footnote

[help]: mailto:help@example.com
"""


def test_addresses_that_are_listed_apart_are_in_no_section() -> None:
    assert parts(LINKED) == [
        ("heading", "Travel", "# Travel"),
        ("prose", "Travel", "Ask your [official][ao], who is named in the [guide]."),
        ("heading", "Travel > Help", "## Help"),
        ("prose", "Travel > Help", "[Note]: this is no link.\n[^1]: Footnote"),
    ]


def test_in_code_they_are_code() -> None:
    assert parts("```\n[a]: /x\n```\n") == [("code", "", "```\n[a]: /x\n```")]


def test_a_word_behind_a_name_is_no_address() -> None:
    chat = "[Ann]: Yes\n\n[1]: Smith_2020\n\n[电]: 010-1234\n"
    assert parts(chat) == [("prose", "", chat.strip())]


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="[]:/a> \n-`#", max_size=60))
def test_only_lines_with_an_address_are_left_out(text: str) -> None:
    position, left_out = 0, ""
    for section in outline(text, hides_addresses=True).sections:
        assert position <= section.start < section.end <= len(text)
        left_out += text[position : section.start]
        position = section.end
    left_out += text[position:]
    assert not left_out.strip() or ("[" in left_out and "]:" in left_out)
