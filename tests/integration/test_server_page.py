"""The page in headless Chromium: a chat with its searches, sources and branches; hostile words stay words."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_agent import KnowledgeBase, Principal, RagAgent
from graphrag_agent.testing import ScriptedChatModel, call
from tests.served_app import served

pytest.importorskip("fastapi", reason="needs the extra server")
playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright to drive a browser")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("needs Chromium (apt-get install chromium)", allow_module_level=True)
from graphrag_agent.server import BearerTokens, Limits, create_app  # noqa: E402

pytestmark = pytest.mark.slow
TOKEN = "anna-token-0123456789"
HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"> <script>document.title='owned'</script> [x](javascript:alert(1))"
)
SHOTS = os.environ.get("PAGE_SHOTS")
"""A folder for screenshots, for whoever wants to look."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def knowledge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    folder = tmp_path_factory.mktemp("documents")
    (folder / "hostile.md").write_text(f"# {HOSTILE}\n\nThe zebra code is 😀 {HOSTILE} and nothing else.\n")
    with KnowledgeBase.open(":memory:", embedder="none") as knowledge:
        knowledge.ingest("examples")
        knowledge.ingest(folder / "hostile.md")
        yield knowledge


class Page:
    """A tab, with what went wrong in it."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": 1100, "height": 800}, **options)
        self.tab = self.context.new_page()
        self.problems: list[str] = []
        self.tab.on("pageerror", lambda error: self.problems.append(str(error)))
        self.tab.on("console", lambda message: self.problems.append(message.text) if message.type == "error" else None)
        self.tab.goto(f"{url}/chat")

    def ask(self, question: str) -> None:
        self.tab.get_by_role("textbox").last.fill(question)
        self.tab.keyboard.press("Enter")

    def wait_for_answers(self, count: int) -> None:
        self.tab.wait_for_function(
            "count => document.querySelectorAll('article.assistant .actions button').length === count"
            " && !document.body.classList.contains('busy')",
            arg=count,
        )

    def texts(self, selector: str) -> list[str]:
        return self.tab.locator(selector).all_inner_texts()

    def wait_for_texts(self, selector: str, *texts: str) -> None:
        """Scripts run when they have been loaded, which may take a moment; fails after thirty seconds."""
        self.tab.wait_for_function(
            "([selector, texts]) => {"
            " const shown = [...document.querySelectorAll(selector)].map(node => node.innerText);"
            " return JSON.stringify(shown) === JSON.stringify(texts) }",
            arg=[selector, texts],
        )

    def shot(self, name: str) -> None:
        if SHOTS:
            self.tab.screenshot(path=str(Path(SHOTS) / f"{name}.png"))


Open = Callable[..., Page]


@pytest.fixture
def open_page(browser: Any, knowledge: KnowledgeBase) -> Iterator[Open]:
    pages: list[Page] = []
    stack: list[Any] = []

    def make(agent: RagAgent | None = None, *, locale: str = "en-GB", app: Any = None, **options: Any) -> Page:
        app = app or create_app(agent or RagAgent(model="offline", knowledge=knowledge), knowledge=knowledge)
        running = served(app)
        stack.append(running)
        pages.append(Page(browser, running.__enter__(), locale=locale, **options))
        return pages[-1]

    yield make
    for page in pages:
        page.context.close()
    for running in stack:
        running.__exit__(None, None, None)


def test_an_answer_has_its_searches_and_sources(open_page: Open) -> None:
    page = open_page()
    page.shot("empty")
    page.ask("What does E-1042 mean and how do I clear it?")
    page.wait_for_answers(1)
    assert "E-1042 means that the gateway's clock is wrong" in page.texts("article.assistant .body")[0]
    assert "[" not in page.texts("article.assistant .body")[0]
    assert any("passages found: " in text for text in page.texts(".steps li"))
    page.tab.locator(".marker").first.click()
    details = page.tab.locator(".sources details[open]")
    assert "the gateway keeps them for up to 30 days" in details.inner_text()
    page.shot("answer")
    assert page.problems == []
    thread = page.tab.url.partition("#")[2]
    page.tab.reload()
    page.wait_for_answers(1)
    assert page.tab.url.endswith(thread)
    assert page.texts(".thread") == ["What does E-1042 mean and how do I clear it?"]
    page.tab.locator(".sources summary").first.click()
    page.shot("reloaded")


@pytest.mark.parametrize(
    ("locale", "send", "sources"),
    [("ru-RU", "Отправить", "Источники"), ("kk-KZ", "Жіберу", "Дереккөздер"), ("zh-CN", "发送", "来源")],
)
def test_it_speaks_the_browsers_language(open_page: Open, locale: str, send: str, sources: str) -> None:
    page = open_page(locale=locale)
    page.wait_for_texts("#send", send)
    page.ask("What is the warranty of the Weir G4?")
    page.wait_for_answers(1)
    page.wait_for_texts(".sources h3", sources)
    page.shot(f"answer-{locale}")
    page.tab.locator("#locale").select_option("en")
    page.wait_for_texts("#send", "Send")
    page.wait_for_texts(".sources h3", "Sources")
    page.tab.reload()
    page.wait_for_texts("#send", "Send")


def test_edit_and_regenerate(open_page: Open) -> None:
    page = open_page()
    page.ask("What is the warranty of the Brook S2?")
    page.wait_for_answers(1)
    page.tab.get_by_role("button", name="Edit").click()
    page.tab.get_by_role("textbox", name="Edit").fill("What is the warranty of the Weir G4?")
    page.shot("edit")
    page.tab.get_by_role("button", name="Save").click()
    page.wait_for_answers(1)
    assert page.texts("article.user .body") == ["What is the warranty of the Weir G4?"]
    assert "36 months" in page.texts("article.assistant .body")[0]
    page.ask("And of the Brook S2?")
    page.wait_for_answers(2)
    page.tab.get_by_role("button", name="Regenerate").first.click()
    page.wait_for_answers(1)
    assert page.texts("article.user .body") == ["What is the warranty of the Weir G4?"]
    assert page.problems == []


def slow_agent(knowledge: KnowledgeBase) -> RagAgent:
    async def wait_long(query: str) -> str:
        """Wait."""
        await asyncio.sleep(30)
        return "done"

    return RagAgent(
        model=ScriptedChatModel(call("wait_long", query="a long way")), knowledge=knowledge, tools=[wait_long]
    )


def test_a_turn_is_stopped_and_its_question_stays(open_page: Open, knowledge: KnowledgeBase) -> None:
    page = open_page(slow_agent(knowledge))
    page.ask("Wait, please.")
    page.tab.get_by_text("Searching: a long way").first.wait_for()
    page.shot("searching")
    page.tab.reload()  # the turn goes on, and the page comes back to it
    page.tab.get_by_text("Searching: a long way").first.wait_for()
    assert page.texts("article.user .body") == ["Wait, please."]
    page.tab.keyboard.press("Escape")
    page.tab.get_by_text("Stopped.").first.wait_for()
    page.tab.wait_for_function("() => !document.body.classList.contains('busy')")
    assert page.texts("article.user .body") == ["Wait, please."]
    assert page.texts("article.assistant") == []
    page.shot("stopped")
    assert page.problems == []


def test_a_tool_that_searches_nothing_is_not_said_to_have_found_nothing(
    open_page: Open, knowledge: KnowledgeBase
) -> None:
    def weekday(date: str) -> str:
        """The day of the week of a date."""
        return "Monday"

    model = ScriptedChatModel(call("weekday", date="2026-11-30"), call("knowledge_search", query="qqq zzz"), "Monday.")
    page = open_page(RagAgent(model=model, knowledge=knowledge, tools=[weekday]))
    page.ask("Which day is it?")
    page.wait_for_answers(1)
    assert page.texts(".steps li") == ["Working: weekday", "Searching: qqq zzz — nothing found"]


def test_hostile_answers_documents_and_titles_stay_text(open_page: Open, knowledge: KnowledgeBase) -> None:
    found = knowledge.search("zebra code").hits[0]
    rest = "- one\n- `<b>two</b>`\n\n```\n<script>1</script>\n```\n<iframe src='//x'></iframe>"
    told = f"**Bold** {HOSTILE} [{found.id}]\n\n{rest}"
    model = ScriptedChatModel(call("knowledge_search", query="zebra code"), told)
    page = open_page(RagAgent(model=model, knowledge=knowledge))
    page.ask(HOSTILE)
    page.wait_for_answers(1)
    page.tab.locator(".sources summary").first.click()
    page.shot("hostile")
    assert page.tab.title() == "Ask your documents"
    assert page.tab.locator("main :is(img, iframe, script, a, b)").count() == 0
    assert "<iframe src='//x'></iframe>" in page.texts("article.assistant .body")[0]
    assert page.texts("article.assistant .body li") == ["one", "<b>two</b>"]
    assert page.texts("article.assistant .body strong") == ["Bold"]
    assert "😀 <img src=x" in page.texts(".sources blockquote")[0]
    assert page.problems == []


def test_the_token_is_asked_for_and_a_wrong_one_is_told(open_page: Open, knowledge: KnowledgeBase) -> None:
    agent = RagAgent(model="offline", knowledge=knowledge)
    tokens = BearerTokens({TOKEN: Principal(user="anna")})
    page = open_page(app=create_app(agent, knowledge=knowledge, authenticate=tokens))
    page.tab.locator("dialog[open] input").fill("wrong")
    page.shot("token")
    page.tab.keyboard.press("Enter")
    page.tab.get_by_text("The access token is missing or unknown.").wait_for()
    page.tab.locator("dialog[open] input").fill(TOKEN)
    page.tab.keyboard.press("Enter")
    page.tab.locator("dialog[open]").wait_for(state="detached")
    page.ask("What is the warranty of the Weir G4?")
    page.wait_for_answers(1)
    assert page.tab.evaluate("localStorage.length") == 0  # not kept longer than the tab


def test_errors_are_told_kindly_and_the_question_is_not_lost(open_page: Open, knowledge: KnowledgeBase) -> None:
    agent = RagAgent(model="offline", knowledge=knowledge)
    app = create_app(agent, knowledge=knowledge, limits=Limits(max_message_characters=20))
    page = open_page(app=app, color_scheme="dark")
    page.ask("This question is longer than allowed.")
    page.tab.get_by_text("The question is too long. Shorten it.").wait_for()
    assert page.tab.locator("#question").input_value() == "This question is longer than allowed."
    assert page.texts("article") == []
    page.shot("error-dark")
    page.context.set_offline(True)
    page.ask("Short?")
    page.tab.get_by_text("The server can't be reached.").wait_for()


def cut_after(count: int, app: Any) -> Any:
    """The app behind a proxy that cuts every stream after so many pieces."""

    async def proxied(scope: Any, receive: Any, send: Any) -> None:
        pieces = 0

        async def limited(message: Any) -> None:
            nonlocal pieces
            pieces += message["type"] == "http.response.body"
            is_stream = scope.get("path", "").endswith(("/turns", "/events"))
            if is_stream and pieces == count:
                await send({**message, "more_body": False})
            elif not is_stream or pieces < count:
                await send(message)
            else:
                raise OSError("cut")

        await app(scope, receive, limited)

    return proxied


def test_a_turn_whose_connection_is_cut_again_and_again_is_followed_to_its_end(
    open_page: Open, knowledge: KnowledgeBase
) -> None:
    app = create_app(RagAgent(model="offline", knowledge=knowledge), knowledge=knowledge)
    page = open_page(app=cut_after(9, app))
    page.ask("What does E-1042 mean?")
    page.wait_for_answers(1)
    assert "the gateway's clock is wrong" in page.texts("article.assistant .body")[0]
    assert page.tab.locator("#error").is_hidden()


def test_a_turn_that_is_lost_with_its_server_does_not_look_as_if_it_ran(
    open_page: Open, knowledge: KnowledgeBase
) -> None:
    page = open_page(app=cut_after(3, create_app(slow_agent(knowledge), knowledge=knowledge)))
    for path in ("**/api/turns/*/events", "**/api/threads/*"):
        page.tab.route(path, lambda route: route.abort())
    page.ask("Wait, please.")
    page.tab.locator(".steps .running").wait_for()
    page.tab.get_by_text("The server can't be reached.").wait_for()
    page.tab.wait_for_function("() => !document.body.classList.contains('busy')")
    assert page.texts(".steps .failed") == ["Searching: a long way"]
    assert page.tab.locator(".pending").count() == 0


@pytest.mark.parametrize("thread", ["100%", "50%41", "проект 2#?"])
def test_a_reload_opens_the_same_conversation_whatever_it_is_called(
    open_page: Open, knowledge: KnowledgeBase, thread: str
) -> None:
    agent = RagAgent(model="offline", knowledge=knowledge)
    agent.ask("What does E-1042 mean?", thread=thread)
    page = open_page(agent)
    page.tab.locator(".thread").click()
    page.wait_for_answers(1)
    page.tab.reload()
    page.wait_for_answers(1)
    assert page.tab.locator("#error").is_hidden()


def test_keys_of_an_input_method_neither_send_nor_stop(open_page: Open) -> None:
    page = open_page()
    page.tab.locator("#question").fill("远程办公")
    for composing in ({"isComposing": True}, {"keyCode": 229}):
        page.tab.locator("#question").dispatch_event("keydown", {"key": "Enter", "bubbles": True, **composing})
    assert page.tab.locator("#question").input_value() == "远程办公"
    assert page.texts("article") == []


def test_threads_are_listed_opened_and_deleted(open_page: Open) -> None:
    page = open_page()
    for question in ("What is the warranty of the Weir G4?", "What does E-1042 mean?"):
        page.tab.get_by_role("button", name="New conversation").click()
        page.ask(question)
        page.wait_for_answers(1)
    assert page.texts(".thread") == ["What does E-1042 mean?", "What is the warranty of the Weir G4?"]
    page.tab.get_by_role("button", name="What is the warranty of the Weir G4?", exact=True).click()
    page.wait_for_answers(1)
    assert page.texts("article.user .body") == ["What is the warranty of the Weir G4?"]
    page.tab.on("dialog", lambda dialog: dialog.accept())
    page.tab.get_by_role("button", name="Delete “What is the warranty of the Weir G4?”").click()
    page.tab.wait_for_function("() => document.querySelectorAll('.thread').length === 1")
    assert page.texts("article") == []


def test_it_fits_a_telephone_and_every_control_has_a_name(open_page: Open) -> None:
    page = open_page()
    page.ask("What does E-1042 mean?")
    page.wait_for_answers(1)
    page.tab.set_viewport_size({"width": 380, "height": 740})
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= 380
    page.shot("telephone")
    page.tab.get_by_role("button", name="Conversations").click()
    page.tab.locator(".thread").wait_for(state="visible")
    page.shot("telephone-threads")
    page.tab.set_viewport_size({"width": 340, "height": 740})  # the title takes two lines here
    header = page.tab.locator("header").bounding_box()
    assert page.tab.locator("#threads").bounding_box()["y"] >= header["y"] + header["height"]
    unnamed = """[...document.querySelectorAll('button, input, textarea, select')].filter(node =>
        !(node.innerText || node.title || node.getAttribute('aria-label') || node.labels?.[0]?.textContent))"""
    assert page.tab.evaluate(f"{unnamed}.length") == 0
    page.tab.set_viewport_size({"width": 1100, "height": 800})
    page.tab.locator("body").press("Tab")
    assert page.tab.evaluate("document.activeElement !== document.body")


def test_quotes_are_highlighted_by_characters_and_stale_passages_are_named(open_page: Open) -> None:
    page = open_page()
    show = """async citations => {
        const { sourceList } = await import('./chat/sources.js');
        const out = sourceList(citations);
        const marks = [...out.querySelectorAll('mark')].map(node => node.textContent);
        return [marks, out.querySelectorAll('blockquote').length];
    }"""
    cited = {"id": "a", "title": "T", "start": 100, "text": "😀😀 <b>one</b> two 三四"}
    quotes = [
        {"start": 115, "end": 120},
        {"start": 103, "end": 113},
        {"start": 0, "end": 50},
        {"start": 112, "end": 114},
    ]
    shown = page.tab.evaluate(show, [{**cited, "quotes": quotes}, {**cited, "quotes": quotes, "stale": True}])
    assert shown == [["<b>one</b>", " ", "wo 三四"], 1]


MARKDOWN = [
    ("a **b** c", "<p>a <strong>b</strong> c</p>"),
    ("1. a\n2. b\n   - c", "<ol><li>a</li><li>b<ul><li>c</li></ul></li></ol>"),
    ("# T\ntext", "<h3>T</h3><p>text</p>"),
    ("```js\n**x** <b>\n", "<pre><code>**x** &lt;b&gt;\n</code></pre>"),
    ("2 * 3 * 4 and snake_case", "<p>2 * 3 * 4 and snake_case</p>"),
    ("[known] [other] `[known]` `known`", "<p>KNOWN [other] KNOWN <code>known</code></p>"),
    ("**a [KNOWN]**", "<p><strong>a KNOWN</strong></p>"),
    ("> said", "<blockquote><p>said</p></blockquote>"),
    ("&lt;b&gt; <b>", "<p>&amp;lt;b&amp;gt; &lt;b&gt;</p>"),
    ("", ""),
]


def test_markdown_becomes_nodes(open_page: Open) -> None:
    page = open_page()
    render = """async text => {
        const { renderMarkdown } = await import('./chat/markdown.js');
        const out = document.createElement('div');
        out.append(renderMarkdown(text, ids => ids[0] === 'known' ? document.createTextNode('KNOWN') : null));
        return out.innerHTML;
    }"""
    assert [page.tab.evaluate(render, text) for text, _ in MARKDOWN] == [told for _, told in MARKDOWN]
    long = "**a " * 20_000 + "`" * 20_001 + "[" * 20_000
    assert len(page.tab.evaluate(render, long)) > 20_000


def test_all_languages_have_the_same_words(open_page: Open) -> None:
    page = open_page()
    told = page.tab.evaluate("async () => (await import('./chat/labels.js')).LABELS")
    assert set(told) == {"en", "ru", "kk", "zh"}
    for labels in told.values():
        assert set(labels) == set(told["en"])
        assert set(labels["errors"]) == set(told["en"]["errors"])
        assert all(labels.values())
