"""Auth on a LangGraph server: the token says who asks, nothing else does; threads of others are not there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from graphrag_agent import KnowledgeBase
from tests.dev_server import dev_server, new_home

pytest.importorskip("langgraph_api", reason="needs the extra studio")
pytest.importorskip("fastapi", reason="needs the extra server")
from langgraph_sdk import Auth

from graphrag_agent.errors import SettingsError
from graphrag_agent.server.langgraph_auth import auth_from
from graphrag_agent.settings import Settings

ANNA, BEN, CLEO = (f"{name}-token-0123456789" for name in ("anna", "ben", "cleo"))
TOKENS = [
    {"token": ANNA, "tenant": "acme", "user": "anna", "groups": ["hr"]},
    {"token": BEN, "tenant": "acme", "user": "ben"},
    {"token": CLEO, "tenant": "other", "user": "anna"},
]
QUESTION = {"messages": [{"role": "user", "content": "What is the code word?"}]}
SECRET, NOTHING = "The code word is heliotrope.", "Nothing was found in the documents"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = new_home(tmp_path_factory.mktemp("auth"), "langgraph.auth.json")
    (home / "tokens.json").write_text(json.dumps(TOKENS))
    (home / "secret.md").write_text(f"# Code word\n\n{SECRET}\n")
    with KnowledgeBase.open(home / ".graphrag", embedder="none") as knowledge:
        knowledge.ingest(home / "secret.md", tenant="acme", groups=["hr"])
    with dev_server(home, "langgraph.auth.json", GRAPHRAG_TOKENS="tokens.json") as url:
        yield url
        assert "BlockingError" not in (home / "server.log").read_text()


def client(url: str, token: str = "", **headers: str) -> httpx.Client:
    given = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.Client(base_url=url, timeout=60, headers={**given, **headers})


def run(asking: httpx.Client, path: str, **more: Any) -> str:
    reply = asking.post(f"{path}/runs/wait", json={"assistant_id": "rag", "input": QUESTION, **more})
    return reply.text


def assert_nothing_was_found(tries: list[tuple[httpx.Client, dict[str, Any]]]) -> None:
    """By any of these runs, made at once: one after the other they take a second each."""
    with ThreadPoolExecutor(len(tries)) as pool:
        told = list(pool.map(lambda given: run(given[0], "", **given[1]), tries))
    assert [text for text in told if SECRET in text or NOTHING not in text] == []


@pytest.mark.slow
def test_the_principal_is_the_tokens_whatever_the_client_sends(url: str) -> None:
    with client(url, ANNA) as anna, client(url, BEN) as ben, client(url, CLEO) as cleo:
        assert SECRET in run(anna, "")
        as_anna = {"identity": "anna", "tenant": "acme", "groups": ["hr"], "is_authenticated": True}
        tries: list[dict[str, Any]] = [
            {},
            {"config": {"configurable": {"langgraph_auth_user": as_anna}}},
            {"config": {"configurable": {"langgraph_auth_user_id": "anna", "tenant": "acme", "groups": ["hr"]}}},
            {"config": {"metadata": {"langgraph_auth_user": as_anna, "graphrag_owner": '["acme", "anna"]'}}},
            {"metadata": {"langgraph_auth_user": as_anna, "tenant": "acme", "groups": ["hr"]}},
            {"context": {"tenant": "acme", "groups": ["hr"]}},
            {"context": {"langgraph_auth_user": as_anna}},
        ]
        tries.append({**tries[1], "user": as_anna})
        assert_nothing_was_found([(other, more) for other in (ben, cleo) for more in tries])


@pytest.mark.slow
def test_threads_of_others_are_not_there(url: str) -> None:
    with client(url, ANNA) as anna, client(url, BEN) as ben, client(url, CLEO) as cleo:
        thread = anna.post("/threads", json={"metadata": {"graphrag_owner": "mine"}}).json()["thread_id"]
        assert SECRET in run(anna, f"/threads/{thread}")
        runs = anna.get(f"/threads/{thread}/runs").json()
        checkpoint = anna.get(f"/threads/{thread}/state").json()["checkpoint"]
        for other in (ben, cleo):
            own = other.post("/threads", json={}).json()["thread_id"]
            asked = {"assistant_id": "rag", "input": QUESTION}
            aimed = {"configurable": {"thread_id": thread, "checkpoint_id": checkpoint["checkpoint_id"]}}
            tries: list[tuple[str, str, Any]] = [
                ("GET", f"/threads/{thread}", None),
                ("GET", f"/threads/{thread}/state", None),
                ("GET", f"/threads/{thread}/history", None),
                ("POST", f"/threads/{thread}/history", {}),
                ("GET", f"/threads/{thread}/runs", None),
                ("GET", f"/threads/{thread}/runs/{runs[0]['run_id']}", None),
                ("GET", f"/threads/{thread}/runs/{runs[0]['run_id']}/join", None),
                ("POST", f"/threads/{thread}/runs/wait", asked),
                ("POST", f"/threads/{thread}/runs/stream", asked),
                ("POST", f"/threads/{thread}/runs", {**asked, "if_not_exists": "create"}),
                ("POST", f"/threads/{thread}/copy", None),
                ("PATCH", f"/threads/{thread}", {"metadata": {"graphrag_owner": "me"}}),
                ("POST", f"/threads/{thread}/state", {"values": QUESTION}),
                ("POST", "/threads", {"thread_id": thread, "if_exists": "do_nothing"}),
                ("POST", f"/threads/{own}/runs/wait", {**asked, "config": aimed}),
                ("POST", f"/threads/{own}/runs/wait", {**asked, "checkpoint": checkpoint}),
                ("POST", "/threads/search", {"metadata": {"graphrag_owner": '["acme", "anna"]'}}),
                ("POST", "/threads/search", {"ids": [thread]}),
                ("DELETE", f"/threads/{thread}", None),
            ]
            for method, path, body in tries:
                text = other.request(method, path, json=body).text
                assert SECRET not in text, (method, path, text)
                assert not (path == "/threads/search" and thread in text)
        kept = anna.get(f"/threads/{thread}").json()
        assert kept["metadata"]["graphrag_owner"] == '["acme", "anna"]'
        assert [message["type"] for message in kept["values"]["messages"]] == ["human", "ai"]
        assert len(anna.get(f"/threads/{thread}/runs").json()) == len(runs)


@pytest.mark.slow
def test_without_a_token_there_is_no_answer(url: str) -> None:
    ways = [{}, {"x-auth-scheme": "langsmith"}, {"x-api-key": "lsv2_pt_anything"}, {"Authorization": "Bearer wrong"}]
    for headers in ways:
        with client(url, **headers) as nobody:
            for path in ("/threads/search", "/assistants/search", "/runs/wait", "/store/items/search", "/api/turns"):
                reply = nobody.post(path, json={"assistant_id": "rag", "input": QUESTION, "namespace_prefix": []})
                assert reply.status_code in (401, 403), (headers, path, reply.text)


@pytest.mark.slow
def test_the_store_is_divided_and_assistants_and_crons_are_the_operators(url: str) -> None:
    with client(url, ANNA) as anna, client(url, BEN) as ben:
        item = {"namespace": ["notes"], "key": "a", "value": {"text": SECRET}}
        assert anna.put("/store/items", json=item).status_code == 204
        found = anna.post("/store/items/search", json={"namespace_prefix": ["notes"]}).json()["items"]
        assert [item["value"]["text"] for item in found] == [SECRET]
        label = found[0]["namespace"][0]
        for prefix in (["notes"], [], [label], [label, "notes"]):
            assert ben.post("/store/items/search", json={"namespace_prefix": prefix}).json()["items"] == []
        assert SECRET not in ben.get("/store/items", params={"namespace": f"{label}.notes", "key": "a"}).text
        seen = ben.post("/store/namespaces", json={}).json()["namespaces"]
        assert label not in {namespace[0] for namespace in seen}
        for body in ({"graph_id": "rag"}, {"graph_id": "rag", "config": {"configurable": {"a": 1}}}):
            assert anna.post("/assistants", json=body).status_code == 403
        assert len(anna.post("/assistants/search", json={}).json()) == 2
        cron = {"schedule": "* * * * *", "assistant_id": "rag", "input": QUESTION}
        assert anna.post("/runs/crons", json=cron).status_code == 403


@pytest.mark.slow
def test_the_http_app_is_mounted_with_the_same_tokens(url: str) -> None:
    with client(url, ANNA) as anna, client(url, BEN) as ben:
        assert "<html" in anna.get("/chat").text
        answer = anna.post("/api/turns", json={"question": QUESTION["messages"][0]["content"]}).json()
        assert SECRET in answer["answer"]
        assert ben.get(f"/api/threads/{answer['thread']}").status_code == 404
        assert SECRET not in ben.post("/api/turns", json={"question": QUESTION["messages"][0]["content"]}).text
        assert anna.get("/ok").json()["ok"] is True
        assert anna.get("/threads/nothing").json().get("detail")  # the server's own errors stay as they are


@pytest.mark.slow
def test_without_auth_a_client_cannot_make_itself_a_user(tmp_path: Path) -> None:
    home = new_home(tmp_path, "langgraph.json")
    (home / "secret.md").write_text(f"# Code word\n\n{SECRET}\n")
    with KnowledgeBase.open(home / ".graphrag", embedder="none") as knowledge:
        knowledge.ingest(home / "secret.md", tenant="acme", groups=["hr"])
    as_anna = {"identity": "anna", "tenant": "acme", "groups": ["hr"], "is_authenticated": True}
    with dev_server(home, "langgraph.json") as url, client(url) as nobody:
        tries: list[dict[str, Any]] = [{}, {"context": {"langgraph_auth_user": as_anna}}]
        tries += [{"config": {place: {"langgraph_auth_user": as_anna}}} for place in ("configurable", "metadata")]
        assert_nothing_was_found([(nobody, more) for more in tries])


def test_auth_without_tokens_does_not_start() -> None:
    with pytest.raises(SettingsError, match="auth needs GRAPHRAG_TOKENS"):
        auth_from(Settings())


def test_a_token_is_its_user_and_an_empty_one_is_nobody(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps(TOKENS))
    auth = auth_from(Settings(tokens=str(path)))
    assert auth._authenticate_handler is not None
    user = asyncio.run(auth._authenticate_handler(f"Bearer {ANNA}"))
    assert (user["identity"], user["tenant"], user["groups"]) == ("anna", "acme", ["hr"])
    with pytest.raises(Auth.exceptions.HTTPException):
        asyncio.run(auth._authenticate_handler("Bearer "))
