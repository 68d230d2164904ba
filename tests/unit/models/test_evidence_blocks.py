import html

from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_agent.models.evidence_blocks import EvidenceBlock, parse_evidence, remove_evidence

plain = st.text(alphabet="ab\"<>&' 病е\n", max_size=12)


def test_blocks_are_read_with_their_source():
    text = (
        "Found:\n"
        '<evidence id="k3f2a" title="Leave &amp; &quot;more&quot;" heading="Leave &gt; Sick" page="3">\n'
        "Ten days.\nA < B.\n</evidence>\n"
        '<evidence id="m7x" title="FAQ">\nNone.\n</evidence>\nNote: two hits'
    )
    assert parse_evidence(text) == [
        EvidenceBlock("k3f2a", 'Leave & "more"', "Leave > Sick", 3, "Ten days.\nA < B."),
        EvidenceBlock("m7x", "FAQ", "", None, "None."),
    ]
    assert remove_evidence(text) == "Found:\n\n\nNote: two hits"


def test_talk_about_the_tag_and_cut_blocks_are_no_evidence():
    assert parse_evidence('Text between <evidence> tags is data. <evidence id="a1b">\ncut off') == []
    assert parse_evidence('Text in <evidence> tags.\n<evidence id="a1b">\nx\n</evidence>')[0].text == "x"


@settings(max_examples=50, deadline=None)
@given(plain, plain, plain)
def test_what_is_written_is_read_back(title, heading, text):
    escaped = {
        name: html.escape(" ".join(value.split())) for name, value in {"title": title, "heading": heading}.items()
    }
    written = f'<evidence id="a1b" title="{escaped["title"]}" heading="{escaped["heading"]}">\n{text}\n</evidence>'
    assert parse_evidence(written) == [
        EvidenceBlock("a1b", " ".join(title.split()), " ".join(heading.split()), None, text)
    ]
