"""The tools that the package brings, by name: what each does, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from graphrag_agent.errors import SettingsError
from graphrag_agent.retrieval.search.strategies import QueryWriter
from graphrag_agent.tools._library import Library
from graphrag_agent.tools.find_documents import Findable, build_find_documents
from graphrag_agent.tools.knowledge_search import Searchable, build_knowledge_search
from graphrag_agent.tools.read_document import build_read_document
from graphrag_agent.tools.spec import ToolSpec
from graphrag_agent.tools.summarize_documents import SummaryWriter, build_summarize_documents


@dataclass(frozen=True)
class ToolParts:
    """What the built-in tools of one graph are made of."""

    knowledge: Searchable | None = None
    query_writer: QueryWriter | None = None
    summary_writer: SummaryWriter | None = None


@dataclass(frozen=True)
class BuiltInTool:
    """A tool that can be had by its name."""

    name: str
    does: str
    """For people: the row of the README's table."""
    build: Callable[[ToolParts], ToolSpec | None]
    """The tool; None where the graph's parts, the knowledge base for one, don't do for it."""
    is_default: bool = False
    """Whether a graph has it that was told nothing else."""


def _knowledge_search(parts: ToolParts) -> ToolSpec | None:
    if parts.knowledge is None:
        return None
    return build_knowledge_search(parts.knowledge, query_writer=parts.query_writer)


def _find_documents(parts: ToolParts) -> ToolSpec | None:
    return build_find_documents(parts.knowledge) if isinstance(parts.knowledge, Findable) else None


def _read_document(parts: ToolParts) -> ToolSpec | None:
    return build_read_document(parts.knowledge) if isinstance(parts.knowledge, Library) else None


def _summarize_documents(parts: ToolParts) -> ToolSpec | None:
    if not isinstance(parts.knowledge, Library):
        return None
    return build_summarize_documents(parts.knowledge, writer=parts.summary_writer)


BUILT_IN = {
    tool.name: tool
    for tool in (
        BuiltInTool(
            "knowledge_search",
            "searches the knowledge base for passages; the scope is injected, never the model's to fill in",
            _knowledge_search,
            is_default=True,
        ),
        BuiltInTool(
            "find_documents",
            "finds whole documents by title, file name or subject, or lists them",
            _find_documents,
            is_default=True,
        ),
        BuiltInTool(
            "read_document",
            "reads a document in order: a page, a section, or on from a place; says how to read on",
            _read_document,
            is_default=True,
        ),
        BuiltInTool(
            "summarize_documents",
            "sums up whole documents part by part; with the model `offline` it quotes the sentences that say most",
            _summarize_documents,
            is_default=True,
        ),
    )
}
"""In the order in which a model is shown them."""

DEFAULT_TOOLS = tuple(tool.name for tool in BUILT_IN.values() if tool.is_default)


def build_tools(names: Iterable[str], parts: ToolParts) -> list[ToolSpec]:
    """The built-in tools of these names, as far as the parts do for them. Raises SettingsError for an unknown name."""
    wanted = list(dict.fromkeys(names))
    if unknown := [name for name in wanted if name not in BUILT_IN]:
        raise SettingsError(f"there is no built-in tool {unknown[0]!r}; there are: {', '.join(BUILT_IN)}")
    built = (BUILT_IN[name].build(parts) for name in BUILT_IN if name in wanted)
    return [replace(spec, origin="the built-in tool") for spec in built if spec is not None]
