"""The commands `graphrag-agent threads ...`: for whoever runs the system, who sees everybody's threads.

What they do is loaded when one is called: LangGraph, which it needs, takes a second.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from graphrag_agent.errors import SettingsError, ThreadError
from graphrag_agent.identity import DEFAULT_TENANT, Principal, owner_of
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

if TYPE_CHECKING:
    from graphrag_agent.all_threads import AllThreads
    from graphrag_agent.persistence.threads import ThreadSummary

T = TypeVar("T")
app = typer.Typer(no_args_is_help=True, help="List, export and delete conversations.")

SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}

UserOption = Annotated[str | None, typer.Option("--user", metavar="U", help="Threads of this user only")]
TenantOption = Annotated[
    str | None, typer.Option("--tenant", metavar="T", help=f"The --user's tenant [{DEFAULT_TENANT}]")
]
CompactOption = Annotated[
    bool, typer.Option("--compact", help="Give the room back; PostgreSQL keeps deleted bytes until then")
]


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=1000, help="How many")] = 50,
    after: Annotated[str, typer.Option("--after", metavar="PLACE", help="Where the last list ended")] = "",
    user: UserOption = None,
    tenant: TenantOption = None,
    kb: KbOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show threads, the last used first."""
    with one_line_errors(debug=debug):
        owner = _owner(user, tenant)
        page = _over_threads(kb, lambda threads: threads.page(owner=owner, limit=limit, after=after))
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
        print_json(_over_threads(kb, lambda threads: threads.export(thread)))


@app.command()
def delete(
    threads: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="The threads")] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="U", help="All threads of this user")] = None,
    tenant: TenantOption = None,
    compact: CompactOption = False,
    kb: KbOption = None,
    debug: DebugOption = False,
) -> None:
    """Erase threads; in a SQLite file their bytes are overwritten. One on which a turn runs is refused."""

    async def run(kept: AllThreads) -> list[str]:
        owner = _owner(user, tenant)
        gone = await (kept.delete_of(owner) if owner else kept.delete(threads or []))
        if compact:
            await kept.compact()
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
    """Erase old threads, or all but the last used; one on which a turn runs stays."""

    async def run(kept: AllThreads) -> list[str]:
        gone = await kept.expire(older_than=_age(older_than), keep=keep)
        if compact:
            await kept.compact()
        return gone

    with one_line_errors(debug=debug):
        if older_than is None and keep is None:
            raise SettingsError("say --older-than AGE, --keep N or both")
        out.print(f"{len(_over_threads(kb, run))} deleted")


def _over_threads(kb: str | None, run: Callable[[AllThreads], Coroutine[Any, Any, T]]) -> T:
    async def opened() -> T:
        async with open_threads(chosen_settings(kb)) as threads:
            return await run(threads)

    open_threads = import_module("graphrag_agent.all_threads").open_threads
    return asyncio.run(opened())


def _owner(user: str | None, tenant: str | None) -> str | None:
    """Whose threads; None: everybody's."""
    if user is None and tenant is not None:
        raise SettingsError(f"--tenant={tenant!r} says of which tenant a --user is; name the user too")
    return None if user is None else owner_of(Principal(tenant=tenant or DEFAULT_TENANT, user=user))


def _age(text: str | None) -> timedelta | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,6})([hdw])", text.strip())
    if found is None:
        raise SettingsError(f"--older-than={text!r} is no age; write 12h, 30d or 8w")
    age = timedelta(seconds=int(found[1]) * SECONDS[found[2]])
    if age > datetime.now(UTC) - datetime.min.replace(tzinfo=UTC):
        raise SettingsError(f"--older-than={text!r} is before the calendar begins")
    return age


def _as_dict(thread: ThreadSummary) -> dict[str, Any]:
    used = thread.used.isoformat() if thread.used else None
    return {"id": thread.id, "owner": thread.owner, "used": used, "turns": thread.turns, "title": thread.title}
