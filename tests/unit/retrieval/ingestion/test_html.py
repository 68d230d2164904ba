import pytest

from graphrag_agent.retrieval.ingestion.parsing.html import parse_html

PAGE = """<?xml version="1.0"?><!doctype html><html><head><title>Help &amp; answers</title><style>p{}</style></head>
<body>
<nav><a href="/">Home</a></nav><!-- note --><script>track()</script><p hidden>ghost</p>
<p style="display: none">ghost</p>
<main><h1>Help</h1><p>Use <code>SKU_99*A</code>, see <a href="https://x.example">the shop</a>.</p>
<h2>Prices</h2><table><tr><th>Item</th><th>Price</th></tr><tr><td>Kite</td><td>10&nbsp;EUR</td></tr></table></main>
<aside>Advert</aside><footer>Imprint</footer></body></html>"""


def test_page_becomes_markdown_without_menus_scripts_and_hidden_parts() -> None:
    parsed = parse_html(PAGE.encode(), "Stem")
    assert parsed.title == "Help & answers"
    assert parsed.text == (
        "# Help\n\nUse `SKU_99*A`, see the shop.\n\n## Prices\n\n| Item | Price |\n| --- | --- |\n| Kite | 10 EUR |"
    )
    assert [(s.kind, s.heading) for s in parsed.sections][-1] == ("table", "Help > Prices")


@pytest.mark.parametrize(
    ("page", "title"),
    [("<h1> First\n head </h1>", "First head"), ("<title> </title><p>x</p>", "Stem"), ("no markup.html", "Stem")],
)
def test_title_falls_back_to_h1_then_the_stem(page: str, title: str) -> None:
    assert parse_html(page.encode(), "Stem").title == title


def test_a_small_article_does_not_stand_for_the_page() -> None:
    page = f"<article>teaser</article><div>{'long text ' * 20}</div>"
    assert "teaser" in parse_html(page.encode(), "Stem").text
    assert parse_html(f"<p>menu</p><article>{'long text ' * 20}</article>".encode(), "").text.startswith("long text")


def test_an_unclosed_head_does_not_swallow_the_page() -> None:
    assert parse_html(b"<html><head><title>T</title><p>Body text.", "Stem").text == "Body text."


def test_layout_tables_are_opened_and_empty_ones_dropped() -> None:
    inner = "<table><tr><td>a</td><td>b</td></tr></table>"
    page = f"<table><tr><td>{inner}</td><td><table><tr><td></td></tr></table><p>side</p></td></tr></table>"
    assert parse_html(page.encode(), "Stem").text == "| a | b |\n| --- | --- |\n\nside"


def test_paragraphs_that_nobody_closed_do_not_nest() -> None:
    parsed = parse_html(("<p>one<P class=a>two" * 2000).encode(), "Stem")
    assert parsed.text.startswith("one\n\ntwo\n\none")
