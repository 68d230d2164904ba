"""What goes wrong outside the graph: told plainly, nothing committed is lost, and the next turn works."""

import asyncio
import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint

from graphrag_agent.conversation.erasing import delete_threads
from graphrag_agent.errors import CheckpointerError, SettingsError
from graphrag_agent.persistence import pooled_postgres
from graphrag_agent.persistence.checkpointers import checkpointer_from, open_checkpointer, open_checkpointer_sync
from graphrag_agent.persistence.guarded import GuardedSaver
from graphrag_agent.persistence.pruning import prune_thread
from graphrag_agent.settings import load_settings
from tests.postgres_server import PostgresServer
from tests.thread_world import Kind, World, opened
from tests.waiting import until_here


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def url(kind: Kind, request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue("postgres_server").database() if kind == "postgres" else ""


async def test_another_event_loop_is_told_the_remedy(kind: Kind, url: str, tmp_path: Path):
    async with opened(kind, tmp_path / "t.sqlite", url) as world:

        def elsewhere() -> BaseException | None:
            try:
                asyncio.run(world.ask("?"))
            except BaseException as error:
                return error
            return None

        error = await asyncio.to_thread(elsewhere)
        assert isinstance(error, CheckpointerError)
        assert "open a checkpointer in the event loop that runs the graph" in str(error)
        await world.ask("and here?")


async def test_a_sync_call_in_the_event_loop_is_told_the_remedy(kind: Kind, url: str, tmp_path: Path):
    async with opened(kind, tmp_path / "t.sqlite", url) as world:
        with pytest.raises(CheckpointerError, match=r"await the async one: graph\.ainvoke for graph\.invoke"):
            world.graph.invoke({"messages": [("user", "?")]}, world.config())


def test_a_checkpointer_whose_event_loop_has_ended_is_told_the_remedy(kind: Kind, url: str, tmp_path: Path):
    async def make() -> World:
        async with opened(kind, tmp_path / "t.sqlite", url) as world:
            return world

    world = asyncio.run(make())
    with pytest.raises(CheckpointerError, match=r"no longer runs; .* in sync code use open_checkpointer_sync"):
        world.graph.invoke({"messages": [("user", "?")]}, world.config())


def test_sync_code_has_a_checkpointer_of_its_own(kind: Kind, url: str, tmp_path: Path):
    with open_checkpointer_sync(kind, tmp_path / "t.sqlite", url=url) as saver:
        world = World(saver)
        out = world.graph.invoke({"messages": [("user", "one?")]}, world.config())
    assert out["messages"][-1].text.startswith("after 2")
    with open_checkpointer_sync(kind, tmp_path / "t.sqlite", url=url) as saver:
        again = World(saver)
        again.thread = world.thread
        assert len(again.graph.get_state(again.config()).values["messages"]) == 2


async def test_a_locked_file_fails_the_turn_plainly_and_the_next_one_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("graphrag_agent.persistence.grouped_sqlite.BUSY_SECONDS", 0.1)
    async with opened("sqlite", tmp_path / "t.sqlite") as world:
        await world.ask("one?")
        other = sqlite3.connect(tmp_path / "t.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CheckpointerError, match="database is locked; another process writes for long"):
            await world.ask("two?")
        with pytest.raises(CheckpointerError, match="database is locked"):
            await prune_thread(world.graph, world.saver, world.thread)
        other.execute("ROLLBACK")
        other.close()
        await world.ask("three?")
        assert await questions(world) == ["one?", "three?"]


async def test_who_reads_the_file_for_long_stops_no_turn_while_a_thread_is_erased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("graphrag_agent.persistence.sqlite_rows.LOG_SECONDS", 1.0)
    async with opened("sqlite", tmp_path / "t.sqlite") as world:
        await world.ask("secret?")
        gone, world.thread = world.thread, "other"
        await world.ask("one?")
        reader = sqlite3.connect(tmp_path / "t.sqlite", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM checkpoints").fetchone()
        await world.ask("two?")
        erasing = asyncio.create_task(delete_threads(world.saver, [gone], owner=None))
        await asyncio.sleep(0.2)
        await asyncio.wait_for(world.ask("three?"), 10)
        with pytest.raises(CheckpointerError, match="is being read for long"):
            await asyncio.wait_for(erasing, 10)
        reader.execute("COMMIT")
        reader.close()
        saver: Any = world.saver
        assert await saver.in_writer(lambda db: db.execute("PRAGMA busy_timeout").fetchone()) == (30_000,)
        await delete_threads(world.saver, ["other"], owner=None)
        assert (tmp_path / "t.sqlite-wal").stat().st_size == 0


@pytest.mark.parametrize("room", range(0, 30, 3))
async def test_a_full_disk_fails_the_turn_plainly_and_loses_nothing(tmp_path: Path, room: int):
    async with opened("sqlite", tmp_path / "t.sqlite") as world:
        await world.ask("one?")

        async def said(pragma: str) -> int:
            saver: Any = world.saver
            row = await saver.in_writer(lambda db: db.execute(pragma).fetchone())
            return row[0] if row else 0

        await said("VACUUM")
        await said(f"PRAGMA max_page_count={await said('PRAGMA page_count') + room}")
        answered = ["one?"]
        for turn in range(4):
            try:
                await world.ask(f"{turn}?")
                answered.append(f"{turn}?")
            except CheckpointerError as error:
                assert "database or disk is full; make room on the disk" in str(error)
        assert len(answered) < 5
        await said("PRAGMA max_page_count=1000000000")
        await world.ask("last?")
        await prune_thread(world.graph, world.saver, world.thread)
        messages = [(kind, text) for _, kind, text in (await world.reads())["values"]["messages"]]
        for question in [*answered, "last?"]:
            (at,) = [place for place, message in enumerate(messages) if message == ("human", question)]
            assert messages[at + 1][0] == "ai"


async def questions(world: World) -> list[str]:
    return [text for _, kind, text in (await world.reads())["values"]["messages"] if kind == "human"]


async def answers(world: World) -> int:
    return sum(kind == "ai" for _, kind, _ in (await world.reads())["values"]["messages"])


@pytest.fixture
def own_server(postgres_server: PostgresServer) -> Any:
    """A server to be stopped and started, apart from the one for all tests."""
    server = PostgresServer()
    yield server
    server.remove()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_a_turn_outlives_a_restart_of_postgres(own_server: PostgresServer, how: str):
    async with opened("postgres", Path(), own_server.url()) as world:
        await world.ask("one?")

        def restart() -> None:
            getattr(own_server, how)()
            own_server.start()

        restarting = threading.Thread(target=restart)
        restarting.start()
        for turn in range(6):
            await world.ask(f"{turn}?")
            await prune_thread(world.graph, world.saver, world.thread)
        restarting.join()
        await world.ask("last?")
        assert await questions(world) == ["one?", *(f"{turn}?" for turn in range(6)), "last?"]
        assert await answers(world) == 8


async def _is_answered(world: Any, question: str) -> bool:
    try:
        await world.ask(question)
    except CheckpointerError:
        return False
    return True


async def test_a_postgres_that_stays_away_fails_the_turn_plainly_and_the_next_one_works(
    own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(pooled_postgres, "PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr(pooled_postgres, "CONNECT_SECONDS", 1.0)
    caplog.set_level(logging.DEBUG)
    async with opened("postgres", Path(), own_server.url()) as world:
        await world.ask("one?")
        own_server.stop()
        with pytest.raises(CheckpointerError, match=r"PostgreSQL at 127\.0\.0\.1:\d+/postgres.*see whether it runs"):
            await world.ask("two?")
        own_server.start()
        async with asyncio.timeout(30):  # the pool looks for the server at longer and longer intervals
            while not await _is_answered(world, "three?"):  # noqa: ASYNC110  # nothing tells us
                await asyncio.sleep(0.5)
        assert await questions(world) == ["one?", "three?"]
    assert "secret-word" not in caplog.text


async def test_four_that_start_together_make_the_tables_once(postgres_server: PostgresServer):
    url = postgres_server.database()

    async def start() -> list[str]:
        async with opened("postgres", Path(), url) as world:
            await world.ask("one?")
            return await questions(world)

    assert await asyncio.gather(*(start() for _ in range(4))) == [["one?"]] * 4


@pytest.mark.parametrize(
    "url",
    [
        "http://ann:secret-word@host/db",
        "ann:secret-word@host",
        "secret-word",
    ],
)
async def test_a_bad_address_is_refused_without_its_password(postgres_server: PostgresServer, url: str):
    with pytest.raises(SettingsError, match="GRAPHRAG_DATABASE_URL can't be read") as caught:
        async with open_checkpointer("postgres", Path(), url=url):
            pass
    assert (
        "secret-word"
        not in f"{caught.value!r} {caught.value.__context__ if not caught.value.__suppress_context__ else ''}"
    )


async def test_a_server_that_is_not_there_is_told_without_the_password(postgres_server: PostgresServer):
    with pytest.raises(CheckpointerError, match="see GRAPHRAG_DATABASE_URL and the server") as caught:
        async with open_checkpointer("postgres", Path(), url="postgresql://ann:secret-word@127.0.0.1:1/db"):
            pass
    assert "secret-word" not in repr(caught.value)


async def test_the_settings_name_the_checkpointer_and_hide_the_password(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("GRAPHRAG_CHECKPOINTER", "postgres")
    with pytest.raises(SettingsError, match="needs GRAPHRAG_DATABASE_URL"):
        async with checkpointer_from(load_settings(), tmp_path):
            pass
    monkeypatch.setenv("GRAPHRAG_DATABASE_URL", postgres_server.database())
    settings = load_settings()
    assert "secret-word" not in f"{settings} {settings!r} {settings.model_dump_json()}"
    async with checkpointer_from(settings, tmp_path) as saver:
        assert "secret-word" not in repr(saver)
        await World(saver).ask("?")
    monkeypatch.setenv("GRAPHRAG_DATABSE_URL", "postgresql://ann:secret-word@host/db")
    with pytest.raises(SettingsError, match="did you mean GRAPHRAG_DATABASE_URL") as caught:
        load_settings()
    assert "secret-word" not in str(caught.value)


@pytest.mark.parametrize("place", ["nowhere/t.sqlite", "bad.sqlite", "."])
async def test_a_file_that_cannot_be_opened_is_told_plainly(tmp_path: Path, place: str):
    (tmp_path / "bad.sqlite").write_bytes(b"not a database at all" * 100)
    with pytest.raises(CheckpointerError, match="see the file's rights and health"):
        async with open_checkpointer("sqlite", tmp_path / place):
            pass


class _Slow(logging.Handler):
    """Holds aiosqlite's thread up wherever it says what it does."""

    def emit(self, record: logging.LogRecord) -> None:
        time.sleep(0.1)


@pytest.fixture
def slow_aiosqlite() -> Iterator[None]:
    log, slow = logging.getLogger("aiosqlite"), _Slow()
    level = log.level
    log.setLevel(logging.DEBUG)
    log.addHandler(slow)
    yield
    log.removeHandler(slow)
    log.setLevel(level)


@pytest.mark.parametrize("cancelled_after", [None, 0.0, 0.05, 0.15, 0.25])
@pytest.mark.usefixtures("slow_aiosqlite")
def test_a_file_that_is_not_opened_leaves_no_thread_that_tells_a_closed_loop(
    tmp_path: Path, cancelled_after: float | None, monkeypatch: pytest.MonkeyPatch
):
    async def opens() -> None:
        async with open_checkpointer("sqlite", tmp_path / ("." if cancelled_after is None else "t.sqlite")):
            pass

    failed: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    before = set(threading.enumerate())
    with pytest.raises(CheckpointerError if cancelled_after is None else TimeoutError):
        asyncio.run(asyncio.wait_for(opens(), cancelled_after))
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
    assert [thread.exc_value for thread in failed] == []


@pytest.mark.parametrize("cancelled", [1, 2])
async def test_a_file_that_opens_for_one_who_was_cancelled_is_closed(
    tmp_path: Path, cancelled: int, monkeypatch: pytest.MonkeyPatch
):
    asked, may_open, is_closed = threading.Event(), threading.Event(), threading.Event()

    class Watched(sqlite3.Connection):
        def close(self) -> None:
            super().close()
            is_closed.set()

    def connect(path: Path, **options: Any) -> sqlite3.Connection:
        asked.set()
        may_open.wait(10)
        return really_connect(path, factory=Watched, **options)

    really_connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", connect)

    async def opens() -> None:
        async with open_checkpointer("sqlite", tmp_path / "t.sqlite"):
            pass

    opening = asyncio.create_task(opens())
    await until_here(asked.is_set)
    for _ in range(cancelled):
        opening.cancel()
        await asyncio.sleep(0)
    may_open.set()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert is_closed.is_set()


async def test_a_list_that_breaks_off_is_read_again_whole():
    class Base(BaseCheckpointSaver[str]):
        tries = 0

        async def alist(self, config: Any, **options: Any) -> Any:
            Base.tries += 1
            yield 1
            if Base.tries == 1:
                raise ConnectionError("reset")
            yield 2

    class Patient(GuardedSaver, Base):  # type: ignore[misc]
        def __init__(self) -> None:
            self.loop = asyncio.get_running_loop()

        async def guarded(self, call: Any) -> Any:
            try:
                return await call()
            except ConnectionError:
                return await call()

    assert [item async for item in Patient().alist(None)] == [1, 2]


async def test_a_write_after_the_end_is_refused_and_does_not_wait_for_ever(tmp_path: Path):
    async with opened("sqlite", tmp_path / "t.sqlite", "") as world:
        await world.ask("one?")
    async with asyncio.timeout(5):
        with pytest.raises(CheckpointerError, match="closed"):
            await world.saver.aput(
                {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, empty_checkpoint(), {}, {}
            )
