"""The commands `graphrag-agent threads ...`: for whoever runs the system, who sees everybody's threads."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Annotated, Any

import typer
from langgraph.checkpoint.base import BaseCheckpointSaver

from graphrag_agent.assembly import build_rag_graph, home_of
from graphrag_agent.errors import SettingsError, ThreadError
from graphrag_agent.identity import DEFAULT_TENANT, Principal, owner_of
from graphrag_agent.models.factory import OFFLINE
from graphrag_agent.persistence import threads as kept
from graphrag_agent.persistence.checkpointers import checkpointer_from
from graphrag_agent.settings import Settings
from graphrag_agent.terminal import (
    DebugOption,
    JsonOption,
    KbOption,
    chosen_settings,
    err,
    one_line_errors,
    out,
    print_json,
    shown,
)

app = typer.Typer(no_args_is_help=True, help="List, export and delete conversations.")

SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}

UserOption = Annotated[str | None, typer.Option("--user", metavar="U", help="Threads of this user only")]
TenantOption = Annotated[str, typer.Option("--tenant", metavar="T", help="The user's tenant")]
CompactOption = Annotated[
    bool, typer.Option("--compact", help="Give the room back; PostgreSQL keeps deleted bytes until then")
]


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=1000, help="How many")] = 50,
    after: Annotated[str, typer.Option("--after", metavar="PLACE", help="Where the last list ended")] = "",
    user: UserOption = None,
    tenant: TenantOption = DEFAULT_TENANT,
    kb: KbOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show threads, the last used first."""

    async def run(graph: Any, saver: BaseCheckpointSaver[Any]) -> kept.ThreadPage:
        return await kept.list_threads(graph, saver, owner=_owner(user, tenant), limit=limit, after=after)

    with one_line_errors(debug=debug):
        page = _over_threads(kb, run)
        if as_json:
            print_json({"threads": [_as_dict(thread) for thread in page.threads], "next": page.next})
            return
        for thread in page.threads:
            used = f"{thread.used:%Y-%m-%d %H:%M}" if thread.used else "?"
            out.print(f"{used}  {thread.turns:3}  {shown(thread.id)}  {shown(thread.title)}")
        if page.next:
            err.print(f"more: --after {page.next}")


@app.command()
def export(
    thread: Annotated[str, typer.Argument(metavar="ID", help="The thread")],
    kb: KbOption = None,
    debug: DebugOption = False,
) -> None:
    """Print all that was said in a thread as JSON, every branch of it."""
    with one_line_errors(debug=debug):
        print_json(_over_threads(kb, lambda graph, saver: kept.export_thread(graph, saver, thread, owner=None)))


@app.command()
def delete(
    threads: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="The threads")] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="U", help="All threads of this user")] = None,
    tenant: TenantOption = DEFAULT_TENANT,
    compact: CompactOption = False,
    kb: KbOption = None,
    debug: DebugOption = False,
) -> None:
    """Erase threads; in a SQLite file their bytes are overwritten."""

    async def run(graph: Any, saver: BaseCheckpointSaver[Any]) -> list[str]:
        owner = _owner(user, tenant)
        gone = await (
            kept.delete_threads_of(saver, owner) if owner else kept.delete_threads(saver, threads or [], owner=None)
        )
        if compact:
            await kept.compact(saver)
        return gone

    with one_line_errors(debug=debug):
        if bool(threads) == bool(user):
            raise SettingsError("name threads or a --user, one of the two")
        gone = _over_threads(kb, run)
        out.print(f"{len(gone)} deleted")
        if missing := set(threads or ()) - set(gone):
            raise ThreadError(f"there is no thread {', '.join(map(repr, sorted(missing)))}")


@app.command()
def prune(
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="AGE", help="Last used longer ago: 12h, 30d, 8w")
    ] = None,
    keep: Annotated[int | None, typer.Option("--keep", metavar="N", min=0, help="Keep the N last used")] = None,
    compact: CompactOption = False,
    kb: KbOption = None,
    debug: DebugOption = False,
) -> None:
    """Erase old threads, or all but the last used."""

    async def run(graph: Any, saver: BaseCheckpointSaver[Any]) -> list[str]:
        gone = await kept.expire_threads(saver, older_than=_age(older_than), keep=keep)
        if compact:
            await kept.compact(saver)
        return gone

    with one_line_errors(debug=debug):
        if older_than is None and keep is None:
            raise SettingsError("say --older-than AGE, --keep N or both")
        out.print(f"{len(_over_threads(kb, run))} deleted")


def _over_threads(kb: str | None, run: Callable[[Any, BaseCheckpointSaver[Any]], Coroutine[Any, Any, Any]]) -> Any:
    async def opened() -> Any:
        async with _opened(chosen_settings(kb)) as (graph, saver):
            return await run(graph, saver)

    return asyncio.run(opened())


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[tuple[Any, BaseCheckpointSaver[Any]]]:
    folder = home_of(settings)
    if settings.checkpointer == "memory":
        raise SettingsError("GRAPHRAG_CHECKPOINTER='memory' keeps threads within one process only")
    if settings.checkpointer == "sqlite" and not (folder / "threads.sqlite").is_file():
        raise ThreadError(f"there are no threads in {str(folder)!r}")
    async with checkpointer_from(settings, folder) as saver:
        yield build_rag_graph(model=OFFLINE, checkpointer=saver), saver


def _owner(user: str | None, tenant: str) -> str | None:
    return None if user is None else owner_of(Principal(tenant=tenant, user=user))


def _age(text: str | None) -> timedelta | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,6})([hdw])", text.strip())
    if found is None:
        raise SettingsError(f"--older-than={text!r} is no age; write 12h, 30d or 8w")
    return timedelta(seconds=int(found[1]) * SECONDS[found[2]])


def _as_dict(thread: kept.ThreadSummary) -> dict[str, Any]:
    used = thread.used.isoformat() if thread.used else None
    return {"id": thread.id, "owner": thread.owner, "used": used, "turns": thread.turns, "title": thread.title}
