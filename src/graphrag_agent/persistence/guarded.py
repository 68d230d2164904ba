"""What can go wrong outside the graph, said in our words: the wrong event loop, a database that is not there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)

from graphrag_agent.errors import CheckpointerError
from graphrag_agent.persistence.steps import ThreadRows

T = TypeVar("T")

REMEDY = "open a checkpointer in the event loop that runs the graph"


class GuardedSaver(BaseCheckpointSaver[str]):
    """Goes before an async saver of LangGraph's in the list of bases. Every call either works or raises plainly.

    Called from another event loop the savers hang or fail by chance; called synchronously in their own they deadlock.
    """

    loop: asyncio.AbstractEventLoop

    async def guarded(self, call: Callable[[], Awaitable[T]]) -> T:
        """The call's result. Raises CheckpointerError in a loop that isn't the saver's, or for what `told` knows."""
        self.check_loop()
        try:
            return await call()
        except Exception as error:
            if (told := self.told(error)) is None:
                raise
            raise told from error

    def told(self, error: Exception) -> CheckpointerError | None:
        """The database's error in our words; None for errors of other kinds."""
        raise NotImplementedError

    def rows(self) -> ThreadRows:
        """The rows of its threads."""
        raise NotImplementedError

    def check_loop(self) -> None:
        """Raise CheckpointerError unless this is the saver's event loop."""
        if asyncio.get_running_loop() is not self.loop:
            raise CheckpointerError(f"the checkpointer was opened in another event loop; {REMEDY}")

    def check_thread(self) -> None:
        """Raise CheckpointerError where a sync call would wait for ever."""
        try:
            running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self.loop:
            raise CheckpointerError(
                "a sync call would block the checkpointer's own event loop; "
                "await the async one: graph.ainvoke for graph.invoke, agent.aask for agent.ask"
            )
        if not self.loop.is_running():
            raise CheckpointerError(
                f"the event loop in which the checkpointer was opened no longer runs; {REMEDY}, "
                "or in sync code use open_checkpointer_sync"
            )

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """A checkpoint; the newest of the thread where the config names none."""
        return await self.guarded(lambda: super(GuardedSaver, self).aget_tuple(config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Checkpoints, newest first."""

        async def read() -> Sequence[CheckpointTuple]:
            found = super(GuardedSaver, self).alist(config, filter=filter, before=before, limit=limit)
            return [item async for item in found]

        for item in await self.guarded(read):  # whole: a list that broke off can't be gone on with
            yield item

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint; its config."""
        return await self.guarded(lambda: super(GuardedSaver, self).aput(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save what a task wrote."""
        await self.guarded(lambda: super(GuardedSaver, self).aput_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete the thread."""
        await self.guarded(lambda: super(GuardedSaver, self).adelete_thread(thread_id))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What Delta channels are rebuilt from."""
        return await self.guarded(
            lambda: super(GuardedSaver, self).aget_delta_channel_history(config=config, channels=channels)
        )

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """`aget_tuple` for another thread than the event loop's."""
        self.check_thread()
        return super().get_tuple(config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """`alist` for another thread than the event loop's."""
        self.check_thread()
        return super().list(config, filter=filter, before=before, limit=limit)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """`aput` for another thread than the event loop's."""
        self.check_thread()
        return super().put(config, checkpoint, metadata, new_versions)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """`aput_writes` for another thread than the event loop's."""
        self.check_thread()
        super().put_writes(config, writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        """`adelete_thread` for another thread than the event loop's."""
        self.check_thread()
        super().delete_thread(thread_id)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """`aget_delta_channel_history` for another thread than the event loop's."""
        self.check_thread()
        return super().get_delta_channel_history(config=config, channels=channels)
