"""The HTTP app over real connections: threads, turns, streams, limits, and who may see what."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from openai import APIStatusError, OpenAI

from graphrag_agent import KnowledgeBase, Principal, RagAgent, Settings
from graphrag_agent.errors import CheckpointerError, ModelUnavailableError, SettingsError
from graphrag_agent.testing import ScriptedChatModel, call
from tests.served_app import served
from tests.waiting import until

pytest.importorskip("fastapi", reason="needs the extra server")
from graphrag_agent.server import BearerTokens, Limits, create_app, serve

ANNA, BEN = "anna-token-0123456789", "ben-token-0123456789"
TOKENS = {ANNA: Principal("acme", "anna"), BEN: Principal("acme", "ben")}
Start = Callable[..., httpx.Client]


@pytest.fixture(scope="module")
def knowledge() -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(":memory:", embedder="none") as knowledge:
        for tenant in ("default", "acme"):
            knowledge.ingest("examples/leave-policy.md", tenant=tenant)
        yield knowledge


@pytest.fixture
def start(knowledge: KnowledgeBase) -> Iterator[Start]:
    """Starts an app and gives a client of it."""
    with ExitStack() as stack:

        def make(model: Any = "offline", *, token: str = "", agent: RagAgent | None = None, **options: Any) -> Any:
            agent = agent or RagAgent(model=model, knowledge=knowledge)
            url = stack.enter_context(served(create_app(agent, knowledge=knowledge, **options)))
            return client_of(url, token)

        def client_of(url: str, token: str) -> httpx.Client:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            return stack.enter_context(httpx.Client(base_url=url, timeout=20, headers=headers))

        make.also = client_of  # type: ignore[attr-defined]
        yield make


def events_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]


def ask(
    client: httpx.Client, question: str = "How many days of annual leave are there?", **more: Any
) -> httpx.Response:
    return client.post("/api/turns", json={"question": question, **more})


def slow_agent(
    knowledge: KnowledgeBase, started: list[str], *, seconds: float = 30.0, answers: int = 1, **options: Any
) -> RagAgent:
    """Its turns hang in a tool until they are stopped."""

    async def wait_long(name: str) -> str:
        """Wait."""
        started.append("started")
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            started.append("stopped")
            raise
        return "done"

    steps = [step for _ in range(answers) for step in (call("wait_long", name="a"), "Done.")]
    return RagAgent(model=ScriptedChatModel(*steps), knowledge=knowledge, tools=[wait_long], **options)


def test_a_question_is_answered_with_sources(start: Start) -> None:
    client = start()
    answer = ask(client).json()
    assert answer["citations"][0]["source"].endswith("leave-policy.md")
    assert answer["outcome"]["ending"] == "answered"
    told = client.get(f"/api/threads/{answer['thread']}").json()
    assert [message["role"] for message in told["messages"]] == ["user", "assistant"]
    assert told["messages"][0]["id"] == answer["question_id"]
    assert told["messages"][1]["text"] == answer["answer"]
    cited = told["messages"][1]["citations"][0]
    assert cited["text"] == answer["citations"][0]["text"]
    assert cited["stale"] is False


def test_a_stream_has_the_events_in_order_and_can_be_taken_up_again(start: Start) -> None:
    client = start()
    reply = ask(client, stream=True)
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = events_of(reply.text)
    assert [events[0]["type"], *(event["type"] for event in events[-2:])] == ["turn_started", "answer", "turn_ended"]
    turn = events[0]["turn"]
    assert [event["event_id"] for event in events] == [f"{turn}:{at}" for at in range(1, len(events) + 1)]
    later = client.get(f"/api/turns/{turn}/events", headers={"Last-Event-ID": f"{turn}:2"})
    assert events_of(later.text) == events[2:]
    assert events_of(client.get(f"/api/turns/{turn}/events", params={"after": f"{turn}:3"}).text) == events[3:]
    assert client.get(f"/api/turns/{turn}/events", params={"after": f"{turn}:999"}).status_code == 404


def test_a_cut_stream_goes_on_where_it_was(start: Start, knowledge: KnowledgeBase) -> None:
    begun: list[str] = []
    client = start(agent=slow_agent(knowledge, begun, seconds=0.5))
    with client.stream("POST", "/api/turns", json={"question": "Wait.", "stream": True}) as reply:
        first = next(line for line in reply.iter_lines() if line.startswith("data: "))
        until(lambda: begun)
    event = events_of(first)[0]
    rest = client.get(f"/api/turns/{event['turn']}/events", headers={"Last-Event-ID": event["event_id"]})
    assert events_of(rest.text)[-1]["outcome"]["ending"] == "answered"
    assert begun == ["started"]


def test_a_streamed_turn_that_nobody_reads_is_stopped_after_the_grace(start: Start, knowledge: KnowledgeBase) -> None:
    begun: list[str] = []
    client = start(agent=slow_agent(knowledge, begun), limits=Limits(grace_seconds=0.2))
    with client.stream("POST", "/api/turns", json={"question": "Wait.", "stream": True}) as reply:
        next(reply.iter_lines())
        until(lambda: begun)
    until(lambda: begun == ["started", "stopped"])


def test_a_client_that_leaves_stops_its_turn(start: Start, knowledge: KnowledgeBase) -> None:
    begun: list[str] = []
    client = start(agent=slow_agent(knowledge, begun, answers=2))
    with pytest.raises(httpx.ReadTimeout):
        client.post("/api/turns", json={"question": "Wait."}, timeout=1.0)
    until(lambda: begun == ["started", "stopped"])


def test_a_turn_is_stopped_on_request_and_its_question_stays(start: Start, knowledge: KnowledgeBase) -> None:
    begun: list[str] = []
    client = start(agent=slow_agent(knowledge, begun))
    thread = client.post("/api/threads", json={}).json()["id"]
    assert client.post(f"/api/threads/{thread}/stop", json={}).json() == {"stopped": False}
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(ask, client, "Wait.", thread=thread, stream=True)
        until(lambda: begun)
        turn = client.get(f"/api/threads/{thread}").json()["running_turn"]
        assert turn
        assert ask(client, "And?", thread=thread).status_code == 409
        assert client.post(f"/api/threads/{thread}/stop", json={}).json() == {"stopped": True}
        assert events_of(running.result().text)[-1]["outcome"]["ending"] == "cancelled"
    told = client.get(f"/api/threads/{thread}").json()
    assert [(message["text"], message["ending"]) for message in told["messages"]] == [("Wait.", "cancelled")]
    assert told["running_turn"] == ""


def test_the_first_turn_of_a_new_thread_is_found_while_it_runs(start: Start, knowledge: KnowledgeBase) -> None:
    begun: list[str] = []
    client = start(agent=slow_agent(knowledge, begun))
    with client.stream("POST", "/api/turns", json={"question": "Wait.", "stream": True}) as reply:
        first = events_of(next(line for line in reply.iter_lines() if line.startswith("data: ")))[0]
        until(lambda: begun)
        assert client.get(f"/api/threads/{first['thread']}").json()["running_turn"] == first["turn"]
        assert client.post(f"/api/threads/{first['thread']}/stop", json={}).json() == {"stopped": True}


def test_edit_and_regenerate_branch_off(start: Start) -> None:
    client = start()
    answer = ask(client).json()
    place = f"/api/threads/{answer['thread']}/messages"
    edited = client.post(f"{place}/{answer['question_id']}/edit", json={"text": "What about sick leave?"}).json()
    assert edited["question_id"] == answer["question_id"]
    events = events_of(client.post(f"{place}/{answer['question_id']}/regenerate", json={"stream": True}).text)
    assert events[0]["question"] == "What about sick leave?"
    branches = client.get(f"/api/threads/{answer['thread']}").json()["branches"]
    assert len(branches) == 3
    old = client.get(f"/api/threads/{answer['thread']}", params={"branch": branches[-1]["head"]}).json()
    assert old["messages"][1]["text"] == answer["answer"]
    assert client.post(f"{place}/{edited['message_id']}/edit", json={"text": "x"}).status_code == 404
    assert client.post(f"{place}/nothing/regenerate", json={}).json()["error"]["code"] == "not_found"


def test_threads_are_made_listed_and_deleted(start: Start) -> None:
    client = start()
    threads = [client.post("/api/threads", json={}).json()["id"] for _ in range(3)]
    ask(client, "Is there sick leave?", thread=threads[0])
    listed = client.get("/api/threads", params={"limit": 2}).json()
    assert [thread["id"] for thread in listed["threads"]] == [threads[0], threads[2]]
    assert listed["threads"][0]["title"] == "Is there sick leave?"
    more = client.get("/api/threads", params={"limit": 2, "after": listed["next"]}).json()
    assert ([thread["id"] for thread in more["threads"]], more["next"]) == ([threads[1]], "")
    assert client.delete(f"/api/threads/{threads[0]}").status_code == 204
    assert client.get(f"/api/threads/{threads[0]}").status_code == 404
    assert client.delete(f"/api/threads/{threads[0]}").status_code == 404


def test_a_deleted_thread_does_not_come_back_with_the_turns_that_ran_or_waited(
    start: Start, knowledge: KnowledgeBase
) -> None:
    begun: list[str] = []
    settings = Settings(when_busy="wait")
    client = start(agent=slow_agent(knowledge, begun, answers=2, settings=settings))
    thread = client.post("/api/threads", json={}).json()["id"]
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(ask, client, "Wait.", thread=thread)
        until(lambda: begun)
        waiting = pool.submit(ask, client, "And?", thread=thread, stream=True)
        time.sleep(0.3)
        assert client.delete(f"/api/threads/{thread}").status_code == 204
        assert running.result().json()["outcome"]["ending"] == "cancelled"
        assert events_of(waiting.result().text)[-1]["outcome"]["ending"] == "cancelled"
    assert client.get(f"/api/threads/{thread}").status_code == 404
    assert client.get("/api/threads").json()["threads"] == []


def test_the_clients_tools_are_asked_for_and_their_results_taken(start: Start, knowledge: KnowledgeBase) -> None:
    panel = {"name": "open_panel", "parameters": {"type": "object", "properties": {"tab": {"type": "string"}}}}
    context = {"client_tools": [panel]}
    client = start(ScriptedChatModel(call("open_panel", tab="sources"), "It is open."))
    waiting = ask(client, "Show the sources.", context=context).json()
    results = {asked["id"]: "opened" for asked in waiting["pending"]}
    body = {"results": results, "context": context}
    assert client.post(f"/api/threads/{waiting['thread']}/resume", json=body).json()["answer"] == "It is open."


class TestPrincipals:
    """Who asks is what the token says."""

    @pytest.fixture
    def two(self, start: Any) -> tuple[httpx.Client, httpx.Client]:
        anna = start(token=ANNA, authenticate=BearerTokens(TOKENS))
        return anna, start.also(str(anna.base_url), BEN)

    def test_anothers_thread_is_as_unknown_as_none(self, two: tuple[httpx.Client, httpx.Client]) -> None:
        anna, ben = two
        answer = ask(anna).json()
        thread, turn = answer["thread"], events_of(ask(anna, stream=True).text)[0]["turn"]
        message = answer["question_id"]
        tries: list[tuple[str, str, Any]] = [
            ("GET", "/api/threads/{}", None),
            ("DELETE", "/api/threads/{}", None),
            ("POST", "/api/threads/{}/stop", {}),
            ("POST", "/api/threads/{}/resume", {"results": {}}),
            ("POST", f"/api/threads/{{}}/messages/{message}/edit", {"text": "Mine?"}),
            ("POST", f"/api/threads/{{}}/messages/{message}/regenerate", {"stream": True}),
        ]
        for method, path, body in tries:
            here, nowhere = (ben.request(method, path.format(name), json=body) for name in (thread, "f" * 32))
            assert here.status_code == nowhere.status_code == 404, path
            assert here.text.replace(thread, "") == nowhere.text.replace("f" * 32, "")
        for field, path in (("thread", "/api/turns"), ("graphrag", "/v1/chat/completions")):
            bodies = [self._body(field, name) for name in (thread, "f" * 32)]
            here, nowhere = (ben.post(path, json=body) for body in bodies)
            assert here.status_code == nowhere.status_code == 404
            assert here.text.replace(thread, "") == nowhere.text.replace("f" * 32, "")
        assert ben.get(f"/api/turns/{turn}/events").status_code == 404
        assert ben.get("/api/threads").json()["threads"] == []
        assert len(anna.get("/api/threads").json()["threads"]) == 2
        assert len(anna.get(f"/api/threads/{thread}").json()["messages"]) == 2

    @staticmethod
    def _body(field: str, thread: str) -> dict[str, Any]:
        if field == "thread":
            return {"question": "Mine?", "thread": thread}
        return {"model": "x", "messages": [{"role": "user", "content": "Mine?"}], "graphrag": {"thread": thread}}

    @pytest.mark.parametrize("header", ["", "Bearer", "Bearer wrong-token-0123456789", f"Basic {ANNA}", ANNA])
    def test_without_a_known_token_there_is_no_answer(self, start: Any, header: str) -> None:
        client = start(authenticate=BearerTokens(TOKENS))
        for path in ("/api/threads", "/v1/models"):
            reply = client.get(path, headers={"Authorization": header} if header else {})
            assert (reply.status_code, reply.headers["www-authenticate"]) == (401, "Bearer")
            assert reply.json()["error"]["code"] == "unauthorized"
        assert client.get("/healthz").status_code == 200

    @pytest.mark.parametrize(
        "more",
        [
            {"principal": {"tenant": "acme"}},
            {"configurable": {"langgraph_auth_user": {"identity": "anna", "tenant": "acme"}}},
            {"metadata": {"graphrag_owner": '["acme", "anna"]'}},
            {"context": {"tenant": "acme"}},
            {"context": {"configurable": {}}},
        ],
        ids=str,
    )
    def test_no_field_of_a_request_sets_who_asks(self, start: Any, more: dict[str, Any]) -> None:
        reply = ask(start(), **more)
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "bad_request")

    def test_the_schemas_are_told_to_who_may_ask(self, start: Any) -> None:
        assert start().get("/api/openapi.json", headers={"Host": "evil.example"}).status_code == 403
        client = start(token=ANNA, authenticate=BearerTokens(TOKENS))
        told = client.get("/api/openapi.json")
        assert "/api/turns" in told.json()["paths"]
        assert "default-src 'none'" in told.headers["content-security-policy"]
        assert start.also(str(client.base_url), "wrong-token-0123456789").get("/api/openapi.json").status_code == 401

    def test_an_async_hook_may_decide(self, start: Any, knowledge: KnowledgeBase) -> None:
        async def decide(token: str) -> Principal | None:
            await asyncio.sleep(0)
            return Principal("nobodys") if token == "let-me-in" else None

        client = start(token="let-me-in", authenticate=decide)
        assert ask(client).json()["citations"] == []  # that tenant has no documents
        client.headers["Authorization"] = "Bearer no"
        assert ask(client).status_code == 401


class TestLimits:
    def test_large_bodies_and_long_messages_are_refused(self, start: Start) -> None:
        client = start(limits=Limits(max_body_bytes=2_000, max_message_characters=100))
        assert ask(client, "a" * 101).json()["error"]["code"] == "message_too_long"
        assert ask(client, "a" * 2_001).json()["error"]["code"] == "body_too_large"

        def pieces() -> Iterator[bytes]:
            for _ in range(300):
                yield b"x" * 10

        reply = client.post("/api/turns", content=pieces(), headers={"Content-Type": "application/json"})
        assert (reply.status_code, reply.json()["error"]["code"]) == (413, "body_too_large")

    @pytest.mark.parametrize("role", ["user", "assistant", "tool"])
    def test_all_messages_of_a_chat_count_together(self, start: Start, role: str) -> None:
        client = start(ScriptedChatModel("Yes."), limits=Limits(max_chat_characters=100))
        thread = client.post("/api/threads", json={}).json()["id"]
        long = [{"role": role, "content": "a" * 60, "tool_call_id": f"c{at}"} for at in (1, 2)]
        messages = [*QUESTION["messages"], *long] if role == "tool" else [*long, *QUESTION["messages"]]
        body = {**QUESTION, "messages": messages, "graphrag": {"thread": thread}}
        reply = client.post("/v1/chat/completions", json=body)
        assert (reply.status_code, reply.json()["error"]["code"]) == (413, "messages_too_long")
        assert client.post("/v1/chat/completions", json=QUESTION).status_code == 200

    def test_a_body_that_does_not_come_is_not_waited_for(self, start: Start) -> None:
        client = start(limits=Limits(max_body_seconds=0.2))
        with socket.create_connection((client.base_url.host, client.base_url.port), 5) as connection:
            connection.sendall(
                b"POST /api/turns HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 100\r\n\r\n{"
            )
            assert connection.recv(4_000).startswith(b"HTTP/1.1 408")

    def test_turns_at_the_same_time_are_bounded(self, start: Any, knowledge: KnowledgeBase) -> None:
        begun: list[str] = []
        agent = slow_agent(knowledge, begun, seconds=0.6, answers=3)
        options = {"authenticate": BearerTokens(TOKENS), "limits": Limits(max_turns_per_principal=1)}
        anna = start(agent=agent, token=ANNA, **options)
        ben = start.also(str(anna.base_url), BEN)
        with ThreadPoolExecutor(2) as pool:
            running = pool.submit(ask, anna, "Wait.", stream=True)
            until(lambda: begun)
            for stream in (True, False):
                refused = ask(anna, "Me too.", stream=stream)
                assert (refused.status_code, refused.headers["retry-after"]) == (429, "2")
                assert refused.json()["error"]["code"] == "too_many_turns"
            assert ask(ben, "And I?").status_code == 200
            assert running.result().status_code == 200
        assert ask(anna, "Now?").status_code == 200

    @pytest.mark.parametrize(
        ("question", "code"),
        [("", "empty_message"), (" \n", "empty_message"), ("half \ud83d", "bad_text")],
    )
    def test_what_is_no_message_is_refused(self, start: Start, question: str, code: str) -> None:
        body = json.dumps({"question": question}).encode()
        reply = start().post("/api/turns", content=body, headers={"Content-Type": "application/json"})
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, code)

    @pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"question": 1}'], ids=repr)
    def test_what_is_no_request_is_refused(self, start: Start, body: bytes) -> None:
        client = start()
        for path in ("/api/turns", "/v1/chat/completions"):
            reply = client.post(path, content=body, headers={"Content-Type": "application/json"})
            assert reply.status_code == 400
            assert reply.json()["error"]["message"]

    def test_half_a_character_ends_no_answer(self, start: Start) -> None:
        client, kind = (
            start(ScriptedChatModel("half \ud83d here", "half \ud83d again")),
            {"Content-Type": "application/json"},
        )
        thread = client.post("/api/threads", json={}).json()["id"]
        assert ask(client, thread=thread).json()["answer"] == "half ? here"
        assert client.get(f"/api/threads/{thread}").json()["messages"][1]["text"] == "half ? here"
        body = json.dumps({**QUESTION, "model": "m\ud800"}).encode()
        told = client.post("/v1/chat/completions", content=body, headers=kind).json()
        assert (told["model"], told["choices"][0]["message"]["content"]) == ("m?", "half ? again")
        refused = client.post(
            "/v1/chat/completions", content=json.dumps({**QUESTION, "\ud800": 1}).encode(), headers=kind
        )
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "?")

    @pytest.mark.parametrize("place", ["/api/threads?after=a%00b", "/api/threads/{}?branch=%00"])
    def test_a_nul_in_a_parameter_is_refused(self, start: Start, place: str) -> None:
        client = start()
        thread = ask(client).json()["thread"]
        for reply in (client.get(place.format(thread)), ask(client, thread=thread, branch="a\0b")):
            assert (reply.status_code, reply.json()["error"]["code"]) == (400, "bad_request")

    @pytest.mark.parametrize("thread", ["a%00b", "%2e%2e", "x" * 200, "%F0%9F%98%80", "a%2Fb", "' OR 1=1"])
    def test_odd_names_of_threads_are_unknown(self, start: Start, thread: str) -> None:
        assert start().get(f"/api/threads/{thread}").status_code == 404

    @pytest.mark.parametrize("thread", ["my notes", "проект", "_x", "a@b", "' OR 1=1", "😀", "x" * 128])
    def test_names_that_the_library_allows_are_served(self, start: Any, knowledge: KnowledgeBase, thread: str) -> None:
        agent = RagAgent(model="offline", knowledge=knowledge)
        agent.ask("How long is sick leave?", thread=thread)
        client = start(agent=agent)
        assert [item["id"] for item in client.get("/api/threads").json()["threads"]] == [thread]
        assert ask(client, thread=thread).status_code == 200
        path = f"/api/threads/{quote(thread, safe='')}"
        assert len(client.get(path).json()["messages"]) == 4
        assert [client.delete(path).status_code, client.get(path).status_code] == [204, 404]

    @pytest.mark.parametrize("thread", ["a\0b", "a\nb", "a\x85b", "half \ud83d", "x" * 129, ""])
    def test_what_no_thread_can_be_named_is_refused(self, start: Any, thread: str) -> None:
        body = json.dumps({"question": "How long is sick leave?", "thread": thread}).encode()
        reply = start().post("/api/turns", content=body, headers={"Content-Type": "application/json"})
        assert reply.status_code in (400, 404)


class TestBrowsers:
    """A page of another site must not use the server of whoever looks at it."""

    def test_another_host_name_is_refused(self, start: Start) -> None:
        client = start()
        for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "[", ""):
            assert client.get("/api/threads", headers={"Host": host}).status_code in (400, 403)
        assert client.get("/api/threads", headers={"Host": "localhost:1"}).status_code == 200

    def test_another_origin_is_refused(self, start: Start) -> None:
        client = start()
        for origin in ("https://evil.example", "null", "http://[", f"http://localhost:{client.base_url.port}"):
            assert ask_from(client, origin).status_code == 403
        own = f"http://127.0.0.1:{client.base_url.port}"
        assert ask_from(client, own).status_code == 200

    @pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
    def test_only_json_is_taken(self, start: Start, kind: str) -> None:
        reply = start().post("/api/turns", content=b'{"question": "Hi?"}', headers={"Content-Type": kind})
        assert (reply.status_code, reply.json()["error"]["code"]) == (415, "json_only")

    def test_cors_is_off_unless_a_site_is_named(self, start: Any) -> None:
        preflight = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
        closed = start().options("/api/turns", headers=preflight)
        assert "access-control-allow-origin" not in closed.headers
        client = start(origins=["https://app.example"])
        allowed = client.options("/api/turns", headers=preflight).headers
        assert allowed["access-control-allow-origin"] == "https://app.example"
        assert ask_from(client, "https://app.example").status_code == 200
        assert ask_from(client, "https://other.example").status_code == 403

    def test_every_answer_has_the_headers_that_protect(self, start: Start) -> None:
        client = start()
        replies = [client.get("/api/threads"), client.get("/chat"), client.get("/nothing"), ask(client, stream=True)]
        for reply in replies:
            assert reply.headers["x-content-type-options"] == "nosniff"
            assert "default-src 'none'" in reply.headers["content-security-policy"]
            assert reply.headers["referrer-policy"] == "no-referrer"
        assert "unsafe" not in client.get("/chat").headers["content-security-policy"]


def ask_from(client: httpx.Client, origin: str) -> httpx.Response:
    return client.post("/api/turns", json={"question": "How long is sick leave?"}, headers={"Origin": origin})


class TestErrors:
    """What went wrong inside is logged, not told."""

    SECRET = "boom at /srv/secret/place with sk-abcdefghijkl and postgres://user:password@db/x"

    @pytest.mark.parametrize("error", [RuntimeError(SECRET), ModelUnavailableError(SECRET), OSError(SECRET)])
    def test_no_secret_leaves_the_server(self, start: Start, knowledge: KnowledgeBase, error: Exception) -> None:
        class Broken(RagAgent):
            async def _run(self, *args: Any, **options: Any) -> None:
                raise error

        client = start(agent=Broken(model="offline", knowledge=knowledge))
        told = [ask(client), ask(client, stream=True), client.post("/v1/chat/completions", json=QUESTION)]
        for reply in told:
            assert reply.status_code >= 500
            assert "reference" in reply.text
            assert not any(word in reply.text for word in ("secret", "sk-", "postgres", "Traceback", "boom"))

    def test_an_error_in_the_middle_of_a_stream_is_its_last_event(self, start: Start, knowledge: KnowledgeBase) -> None:
        class Breaks(RagAgent):
            async def _run(self, start: Any, emit: Any, *args: Any, **options: Any) -> None:
                await super()._run(
                    start, lambda event: emit(event) if event.type == "turn_started" else None, *args, **options
                )
                raise RuntimeError(TestErrors.SECRET)

        client = start(agent=Breaks(model="offline", knowledge=knowledge))
        events = events_of(ask(client, stream=True).text)
        assert [event["type"] for event in events] == ["turn_started", "error"]
        assert events[1]["event_id"] == events[0]["event_id"].removesuffix("1") + "2"
        assert events[1]["message"] == "the server could not answer"

    def test_other_paths_and_methods_are_refused_alike(self, start: Start) -> None:
        client = start()
        for reply, status in ((client.get("/nothing"), 404), (client.get("/api/turns"), 405)):
            assert (reply.status_code, set(reply.json()["error"])) == (status, {"code", "message", "remedy"})


QUESTION = {"model": "x", "messages": [{"role": "user", "content": "How many days of annual leave are there?"}]}


class TestOpenAI:
    def test_the_client_gets_an_answer_and_leaves_nothing_behind(self, start: Start) -> None:
        client = start()
        with OpenAI(base_url=f"{client.base_url}/v1", api_key="any", max_retries=0) as openai:
            assert [model.id for model in openai.models.list()] == ["graphrag-agent"]
            told = openai.chat.completions.create(**QUESTION)  # type: ignore[call-overload]
            assert told.graphrag["citations"][0]["source"].endswith("leave-policy.md")
            pieces = list(openai.chat.completions.create(**QUESTION, stream=True))  # type: ignore[call-overload]
        text = "".join(piece.choices[0].delta.content or "" for piece in pieces)
        assert text == told.choices[0].message.content
        assert client.get("/api/threads").json()["threads"] == []

    @pytest.mark.parametrize("stream", [False, True])
    def test_an_answer_is_given_where_its_thread_cannot_be_erased(
        self, start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, stream: bool
    ) -> None:
        async def fails(*args: Any, **options: Any) -> list[str]:
            raise CheckpointerError("the file is being read for long")

        monkeypatch.setattr("graphrag_agent.server.chat_routes.delete_threads", fails)
        reply = start(ScriptedChatModel("Ten days.")).post("/v1/chat/completions", json={**QUESTION, "stream": stream})
        assert reply.status_code == 200
        assert "Ten days." in reply.text
        assert "error" not in reply.text
        assert "the file is being read for long" in caplog.text

    def test_the_history_that_the_client_tells_counts(self, start: Start, knowledge: KnowledgeBase) -> None:
        model = ScriptedChatModel(lambda messages, tools: " | ".join(message.text for message in messages[1:]))
        client = start(model)
        earlier = [{"role": "user", "content": "First?"}, {"role": "assistant", "content": "One."}]
        body = {"model": "x", "messages": [*earlier, {"role": "user", "content": "Second?"}]}
        told = client.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]["content"]
        assert told == "First? | One. | Second?"

    def test_a_thread_goes_on_and_errors_have_openais_shape(self, start: Any) -> None:
        client = start(token=ANNA, authenticate=BearerTokens(TOKENS))
        thread = client.post("/api/threads", json={}).json()["id"]
        with OpenAI(base_url=f"{client.base_url}/v1", api_key=ANNA, max_retries=0) as openai:
            openai.chat.completions.create(**QUESTION, extra_body={"graphrag": {"thread": thread}})
            assert len(client.get(f"/api/threads/{thread}").json()["messages"]) == 2
            with pytest.raises(APIStatusError) as raised:
                openai.chat.completions.create(**QUESTION, extra_body={"graphrag": {"thread": "no"}})
            assert (raised.value.status_code, raised.value.code) == (404, "unknown_thread")
        with OpenAI(base_url=f"{client.base_url}/v1", api_key="wrong", max_retries=0) as openai:
            with pytest.raises(APIStatusError) as raised:
                openai.models.list()
            assert (raised.value.status_code, raised.value.type) == (401, "authentication_error")


def test_an_app_from_settings_keeps_its_threads(tmp_path: Any) -> None:
    home = tmp_path / "kb"
    with KnowledgeBase.open(home, embedder="none") as knowledge:
        knowledge.ingest("examples/leave-policy.md")
    settings = Settings(kb=str(home), embedder="none")
    for turns in (1, 2):
        with served(create_app(settings)) as url, httpx.Client(base_url=url, timeout=30) as client:
            listed = client.get("/api/threads").json()["threads"]
            thread = listed[0]["id"] if listed else None
            ask(client, **({"thread": thread} if thread else {}))
            assert [item["turns"] for item in client.get("/api/threads").json()["threads"]] == [turns]


def test_where_the_app_is_mounted_cors_is_not_its_own_business() -> None:
    with pytest.raises(SettingsError, match="origins can't be set where the app is mounted"):
        create_app(Settings(), origins=["https://a.example"], is_mounted=True)


def test_a_fault_in_the_middle_of_a_chat_completion_is_the_servers(start: Start, monkeypatch: Any) -> None:
    async def broken(self: Any, *args: Any, **options: Any) -> Any:
        raise RuntimeError("secret words")

    client = start(ScriptedChatModel("x"))
    monkeypatch.setattr("graphrag_agent.graph.nodes.start_turn.recall_evidence", broken)
    asked = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
    whole = client.post("/v1/chat/completions", json=asked)
    assert (whole.status_code, whole.json()["error"]["type"]) == (500, "server_error")
    assert "secret words" not in whole.text
    streamed = client.post("/v1/chat/completions", json={**asked, "stream": True}).text
    assert '"type": "server_error"' in streamed
    assert "secret words" not in streamed


def test_an_app_lets_go_of_its_knowledge_base(tmp_path: Any) -> None:
    home = tmp_path / "kb"
    with KnowledgeBase.open(home, embedder="none") as knowledge:
        knowledge.ingest("examples/leave-policy.md")
    app = create_app(Settings(kb=str(home), embedder="none"))
    with served(app) as url, httpx.Client(base_url=url, timeout=30) as client:
        assert ask(client).status_code == 200
    code = f"from graphrag_agent import KnowledgeBase; KnowledgeBase.open({str(home)!r}, embedder='none').close()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_an_address_for_others_is_refused_without_tokens() -> None:
    with pytest.raises(SettingsError, match="token"):
        serve(Settings(), host="0.0.0.0", port=0)


@pytest.mark.parametrize(
    "content",
    [
        "not json",
        "[]",
        json.dumps([{"token": "short", "user": "ann"}]),
        json.dumps([{"user": "ann"}]),
        json.dumps([{"token": "a-token-0123456789"}]),
        json.dumps([{"token": "a-token-0123456789", "user": "ann"}] * 2),
    ],
)
def test_a_bad_file_of_tokens_is_refused_and_no_token_told(tmp_path: Any, content: str) -> None:
    (tmp_path / "tokens.json").write_text(content)
    with pytest.raises(SettingsError) as raised:
        BearerTokens.load(tmp_path / "tokens.json")
    assert "a-token-0123456789" not in str(raised.value)
