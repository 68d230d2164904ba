"""What `graphrag-agent ask` does: one turn, on a thread that is kept where one was named."""

from __future__ import annotations

from graphrag_agent.agent import RagAgent
from graphrag_agent.conversation.answer import Answer
from graphrag_agent.graph.nodes.summarize_on_max_iterations import NO_ANSWER
from graphrag_agent.identity import Principal
from graphrag_agent.knowledge_opening import home_of
from graphrag_agent.persistence.checkpointers import checkpointer_from
from graphrag_agent.retrieval.knowledge_base import KnowledgeBase
from graphrag_agent.settings import Settings
from graphrag_agent.terminal import err


async def ask_once(
    settings: Settings, knowledge: KnowledgeBase, question: str, thread: str | None, principal: Principal
) -> Answer:
    """The answer; meanwhile stderr says that it is worked on."""
    kept = settings if thread is not None else settings.model_copy(update={"checkpointer": "memory"})
    async with checkpointer_from(kept, home_of(settings)) as checkpointer:
        agent = RagAgent(knowledge=knowledge, checkpointer=checkpointer, settings=settings)
        with err.status("searching and reading ..."):
            return await agent.aask(question, thread=thread, principal=principal)


def has_failed(answer: Answer) -> bool:
    """Whether the model wrote no answer: it failed, or didn't come to one in time."""
    return bool(answer.outcome["ending"] == "model_error" or answer.outcome["reason"] == NO_ANSWER)
