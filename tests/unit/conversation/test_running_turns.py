"""The registry of turns by itself: many threads, many loops, lost ones."""

import asyncio
import gc
import threading
import weakref
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.conversation.running_turns import RunningTurn, RunningTurns, running_turns_of
from graphrag_agent.errors import ThreadBusyError, ThreadError


def turn(thread: str = "t", owner: str = "ann") -> RunningTurn:
    return RunningTurn(f"turn-{thread}", thread, owner)


async def test_a_thousand_threads_leave_nothing_behind():
    turns = RunningTurns()

    async def one(name: str) -> None:
        async with turns.hold(turn(name), "wait"):
            await asyncio.sleep(0)

    await asyncio.gather(*(one(f"t{n % 1000}") for n in range(3000)))
    assert len(turns) == 0


async def test_those_who_wait_come_in_their_order():
    turns, order = RunningTurns(), []

    async def one(number: int) -> None:
        async with turns.hold(turn(), "wait"):
            order.append(number)
            await asyncio.sleep(0.001)

    await asyncio.gather(*map(one, range(9)))
    assert order == list(range(9))


def test_a_turn_whose_loop_was_closed_over_it_does_not_hold_the_thread():
    turns = RunningTurns()

    async def lose() -> Any:
        held = turns.hold(turn(), "refuse")
        await held.__aenter__()
        return held

    loop = asyncio.new_event_loop()
    lost = loop.run_until_complete(lose())
    loop.close()
    assert turns.find("t", "ann") is None, "nobody can stop it"

    async def take() -> None:
        async with turns.hold(turn(), "refuse"):
            with pytest.raises(ThreadBusyError):
                async with turns.hold(turn(), "refuse"):
                    raise AssertionError("two turns on one thread")

    asyncio.run(take())
    assert len(turns) == 0
    asyncio.run(lost.__aexit__(None, None, None))
    assert len(turns) == 0


async def test_another_owner_neither_gets_the_thread_nor_finds_its_turn():
    turns = RunningTurns()
    async with turns.hold(turn(), "refuse"):
        for when_busy in ("refuse", "wait"):
            with pytest.raises(ThreadError, match="thread 't' is unknown") as raised:
                async with turns.hold(turn(owner="bob"), when_busy):  # type: ignore[arg-type]
                    raise AssertionError("two owners")
            assert not isinstance(raised.value, ThreadBusyError)
        assert turns.find("t", "bob") is None and turns.find("turn-t", "bob") is None
        assert turns.find("t", "ann") is turns.find("turn-t", "ann") is not None


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["run", "fail", "cancel"])), min_size=1, max_size=12))
def test_no_two_turns_ever_hold_one_thread(plan: list[tuple[int, str]]):
    turns, inside, seen = RunningTurns(), dict.fromkeys(range(3), 0), []

    async def one(thread: int, fate: str) -> None:
        async with turns.hold(turn(str(thread)), "wait"):
            inside[thread] += 1
            seen.append(inside[thread])
            try:
                await asyncio.sleep(0)
                if fate == "fail":
                    raise ValueError
            finally:
                inside[thread] -= 1

    async def all_of_them() -> list[Any]:
        tasks = [asyncio.create_task(one(*item)) for item in plan]
        await asyncio.sleep(0)
        for task, (_, fate) in zip(tasks, plan, strict=True):
            if fate == "cancel":
                task.cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    done = asyncio.run(all_of_them())
    assert all(result is None for result, (_, fate) in zip(done, plan, strict=True) if fate == "run")
    assert set(seen) <= {1} and len(turns) == 0


def test_turns_of_many_loops_take_turns():
    turns, inside, most = RunningTurns(), [0], [0]

    async def one() -> None:
        for _ in range(20):
            async with turns.hold(turn(), "wait"):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                await asyncio.sleep(0.0005)
                inside[0] -= 1

    threads = [threading.Thread(target=asyncio.run, args=(one(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert most == [1] and len(turns) == 0


def test_a_checkpointer_that_is_gone_takes_its_registry_along():
    class Saver:
        pass

    kept, gone = Saver(), Saver()
    registry = running_turns_of(kept)
    assert running_turns_of(kept) is registry
    left = weakref.ref(running_turns_of(gone))
    assert left() is not registry
    del gone
    gc.collect()
    assert left() is None
