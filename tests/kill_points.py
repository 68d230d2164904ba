"""Kills a process that talks, between any two of its writes, and looks at what is left. Run by the kill test.

Usage: kill_points.py KIND PLACE DURABILITY ROUNDS SEED LOG; PLACE is a file or a URL.
"""

import asyncio
import os
import random
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from graphrag_agent.persistence.pruning import prune_thread
from tests.thread_world import World, opened


def in_fork(work: Callable[[], Awaitable[None]]) -> int:
    """How a process of its own ended that did this work."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        asyncio.run(work())  # type: ignore[arg-type]  # a coroutine
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def kill_at(saver: Any, number: int) -> None:
    """Before or after the write of that number the process dies. LangGraph copies savers, so their class is changed."""
    left, kind = number, type(saver)

    def watch(name: str) -> None:
        write = getattr(kind, name)

        async def watched(self: Any, *arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            result = await write(self, *arguments, **options)
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        setattr(kind, name, watched)

    for name in ("aput", "aput_writes", "in_writer" if hasattr(saver, "in_writer") else "guarded"):
        watch(name)


def main() -> None:
    kind, place, durability, rounds, seed, log_place = sys.argv[1:]
    rng = random.Random(int(seed))
    log = Path(log_place)
    log.touch()

    async def in_world(work: Callable[[World], Awaitable[None]]) -> None:
        async with opened(kind, Path(place), place if kind == "postgres" else "") as world:  # type: ignore[arg-type]
            world.thread = "t"
            await work(world)

    for round_ in range(int(rounds)):
        at = rng.randrange(1, 30 if durability == "exit" else 110)

        async def talk(world: World, at: int = at, round_: int = round_) -> None:
            kill_at(world.saver, at)
            with log.open("a", buffering=1) as told:  # noqa: ASYNC230  # nothing else runs here
                for turn in range(1000):
                    await world.ask(f"{round_}.{turn}?", durability=durability)
                    told.write(f"{round_}.{turn}?\n")
                    await prune_thread(world.graph, world.saver, world.thread)

        async def look(world: World, round_: int = round_) -> None:
            messages = [(kind, text) for _, kind, text in (await world.reads())["values"]["messages"]]
            for question in log.read_text().split():  # noqa: ASYNC240  # nothing else runs here
                assert messages.count(("human", question)) == 1, (question, messages)
                assert messages[messages.index(("human", question)) + 1][0] == "ai", (question, messages)
            kinds = "".join(kind[0] for kind, _ in messages)
            assert "aa" not in kinds and not kinds.startswith("a"), kinds
            await world.ask(f"after {round_}?", durability=durability)
            assert [kind for _, kind, _ in (await world.reads())["values"]["messages"]][-2:] == ["human", "ai"]
            await prune_thread(world.graph, world.saver, world.thread)

        assert in_fork(lambda talk=talk: in_world(talk)) == signal.SIGKILL, at  # type: ignore[misc]
        assert in_fork(lambda look=look: in_world(look)) == 0, (durability, at)  # type: ignore[misc]
    print("answers kept:", len(log.read_text().split()))


if __name__ == "__main__":
    main()
