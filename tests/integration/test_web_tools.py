"""The web in whole turns: found, read, cited; a refusal is what the model reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from graphrag_agent import build_rag_graph
from graphrag_agent.testing import ScriptedChatModel, call
from graphrag_agent.tools._page_reading import page_pool
from graphrag_agent.tools._web_results import WebResult
from graphrag_agent.tools.web_fetch import WebFetchOptions, build_web_fetch
from graphrag_agent.tools.web_search import build_web_search
from tests.fake_web import PUBLIC_IP, FakeWeb, page, redirect

URL = "http://shop.example/g4"
PAGE = page("<title>Weir G4</title><p>The Weir G4 costs 120 euros and weighs 12 kg.</p>")
ASK = {"messages": [{"role": "user", "content": "What does the Weir G4 cost?"}]}


class OneResult:
    async def search(self, query: str, count: int) -> Sequence[WebResult]:
        return [WebResult("Weir G4", URL, "A pump for small gardens.")]


async def run(web: FakeWeb, *script: Any) -> tuple[dict[str, Any], ScriptedChatModel]:
    tools = [build_web_search(OneResult()), build_web_fetch(WebFetchOptions(network=web.network))]
    with ScriptedChatModel(*script) as model:
        out = await build_rag_graph(model=model, tools=tools).ainvoke(ASK)
    page_pool.rest()
    return out, model


def shown_id(messages: list[BaseMessage]) -> str:
    """The id of the first evidence in the last message."""
    found = re.search(r'<evidence id="(\w+)"', messages[-1].text)
    assert found is not None
    return found[1]


async def test_a_page_that_a_search_found_is_read_and_cited_by_its_url(monkeypatch: pytest.MonkeyPatch) -> None:
    ids: list[str] = []

    def answer(messages: list[BaseMessage], _: tuple[str, ...]) -> str:
        ids.append(shown_id(messages))
        return f"The Weir G4 costs 120 euros [{ids[0]}]."

    with FakeWeb({"shop.example": {"/g4": PAGE}}) as web, web.wired(monkeypatch):
        out, _ = await run(web, call("web_search", query="Weir G4 price"), call("web_fetch", url=URL), answer)
    (citation,) = out["messages"][-1].response_metadata["citations"]
    assert (citation["id"], citation["source"], citation["title"]) == (ids[0], URL, "Weir G4")
    assert (out["outcome"]["ending"], out["outcome"]["calls"]["run"], out["outcome"]["warnings"]) == ("answered", 2, [])


async def test_a_refused_address_is_an_error_that_the_model_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def give_up(messages: list[BaseMessage], _: tuple[str, ...]) -> str:
        seen.extend(message.text for message in messages if message.type == "tool")
        return "The page can't be read."

    urls = ["http://169.254.169.254/latest/meta-data/", "http://rebound.example/", "http://shop.example/"]
    sites = {"shop.example": {"/": redirect("http://127.0.0.1:8000/admin")}}
    with FakeWeb(sites, {"rebound.example": [["10.0.0.1"]]}) as web, web.wired(monkeypatch):
        out, _ = await run(web, [call("web_fetch", url=url) for url in urls], give_up)
    assert [text.count('"error"') for text in seen] == [1, 1, 1]
    assert ["private or reserved address" in seen[0], "private or reserved address" in seen[1]] == [True, True]
    assert "redirects elsewhere" in seen[2]
    assert {ip for ip, _ in web.connected} == {PUBLIC_IP}
    assert web.urls == ["http://shop.example/"]
    assert out["outcome"]["ending"] == "answered"
