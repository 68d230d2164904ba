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


LONG, SHORT = "The scheduler was rewritten. " * 9, "The port is now 9090. " * 6


@pytest.mark.parametrize(
    "page",
    [
        f"<h1>Notes</h1><article><h2>2.1</h2>{LONG}</article><article><h2>2.0</h2>{SHORT}</article>",
        f"<h1>Notes</h1><div><article>{LONG}</article></div><section><article>{SHORT}</article></section>",
        f"<h1>Notes</h1><article><article>{LONG}</article></article><article>{SHORT}</article>",
        f"<h1>Notes</h1><main>{LONG}</main><main>{SHORT}</main>",
        f"<main><h1>Notes</h1><article>{LONG}</article><article>{SHORT}</article></main><p>menu</p>",
    ],
    ids=["beside each other", "in other parts", "one holds another", "mains", "in a main"],
)
def test_no_article_is_lost_to_a_larger_one(page: str) -> None:
    text = parse_html(f"<nav>menu</nav>{page}".encode(), "Stem").text
    assert text.startswith("# Notes") and "scheduler" in text and "9090" in text and "menu" not in text


def test_an_only_article_stands_for_the_page_with_those_inside_it() -> None:
    page = f"<p>menu</p><article>{LONG}<article>{SHORT}</article></article>"
    text = parse_html(page.encode(), "Stem").text
    assert text.startswith("The scheduler") and "9090" in text


def test_an_unclosed_head_does_not_swallow_the_page() -> None:
    assert parse_html(b"<html><head><title>T</title><p>Body text.", "Stem").text == "Body text."


def test_layout_tables_are_opened_and_empty_ones_dropped() -> None:
    inner = "<table><tr><td>a</td><td>b</td></tr></table>"
    page = f"<table><tr><td>{inner}</td><td><table><tr><td></td></tr></table><p>side</p></td></tr></table>"
    assert parse_html(page.encode(), "Stem").text == "| a | b |\n| --- | --- |\n\nside"


def test_paragraphs_that_nobody_closed_do_not_nest() -> None:
    parsed = parse_html(("<p>one<P class=a>two" * 2000).encode(), "Stem")
    assert parsed.text.startswith("one\n\ntwo\n\none")


def test_a_numbered_list_of_addresses_that_readers_see_is_in_a_section() -> None:
    parsed = parse_html(b"<p>See [1].</p><p>[1]: https://example.com/paper</p><p>[Ann]: hello.there</p>", "Stem")
    assert "".join(parsed.text[section.start : section.end] for section in parsed.sections) == parsed.text
    assert "https://example.com/paper" in parsed.text
