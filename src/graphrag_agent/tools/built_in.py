"""The tools that the package brings, by name: what each does, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Literal, cast

from graphrag_agent.errors import SettingsError
from graphrag_agent.models.asking import GivenModel
from graphrag_agent.retrieval.search.strategies import QueryWriter
from graphrag_agent.tools._databases import Databases
from graphrag_agent.tools._library import Library
from graphrag_agent.tools._web_results import SearchProvider
from graphrag_agent.tools.critique import build_critique
from graphrag_agent.tools.database_query import build_database_query
from graphrag_agent.tools.find_documents import Findable, build_find_documents
from graphrag_agent.tools.knowledge_search import Searchable, build_knowledge_search
from graphrag_agent.tools.read_document import build_read_document
from graphrag_agent.tools.reason import build_reason
from graphrag_agent.tools.run_python import build_run_python
from graphrag_agent.tools.spec import ToolSpec
from graphrag_agent.tools.summarize_documents import SummaryWriter, build_summarize_documents
from graphrag_agent.tools.tabular_analysis import HasOriginals, build_tabular_analysis
from graphrag_agent.tools.web_fetch import build_web_fetch
from graphrag_agent.tools.web_search import build_web_search


@dataclass(frozen=True)
class ToolParts:
    """What the built-in tools of one graph are made of."""

    knowledge: Searchable | None = None
    query_writer: QueryWriter | None = None
    summary_writer: SummaryWriter | None = None
    reasoning_model: GivenModel | None = None
    databases: Databases | None = None
    search_provider: SearchProvider | None = None
    fetches_web: bool = False
    interpreter: Literal["auto", "off", "monty", "sandbox"] = "auto"


@dataclass(frozen=True)
class BuiltInTool:
    """A tool that can be had by its name."""

    name: str
    does: str
    """For people: the row of the README's table."""
    build: Callable[[ToolParts], ToolSpec | None]
    """The tool; None where the graph's parts, the knowledge base for one, don't do for it."""
    needs: str
    """What a graph must have for it; for people."""
    is_default: bool = False
    """Whether a graph of the mode rag has it that was told nothing else; research has all."""


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


def _tabular_analysis(parts: ToolParts) -> ToolSpec | None:
    is_there = isinstance(parts.knowledge, HasOriginals) and find_spec("duckdb") and find_spec("sqlglot")
    return build_tabular_analysis(cast(HasOriginals, parts.knowledge)) if is_there else None


def _database_query(parts: ToolParts) -> ToolSpec | None:
    return None if parts.databases is None else build_database_query(parts.databases)


def _web_search(parts: ToolParts) -> ToolSpec | None:
    return None if parts.search_provider is None else build_web_search(parts.search_provider)


def _web_fetch(parts: ToolParts) -> ToolSpec | None:
    return build_web_fetch() if parts.fetches_web else None


def _run_python(parts: ToolParts) -> ToolSpec | None:
    if parts.interpreter == "auto":
        return build_run_python(knowledge=parts.knowledge) if find_spec("pydantic_monty") else None
    if parts.interpreter == "off":
        return None
    return build_run_python(interpreter=parts.interpreter, knowledge=parts.knowledge)


def _reason(parts: ToolParts) -> ToolSpec | None:
    return None if parts.reasoning_model is None else build_reason(parts.reasoning_model)


def _critique(parts: ToolParts) -> ToolSpec | None:
    return None if parts.reasoning_model is None else build_critique(parts.reasoning_model)


_DOCUMENTS = "a knowledge base"
_EXTRA = "the extra 'tools' (pip install 'graphrag-agent[tools]')"
_A_MODEL = "a chat model, GRAPHRAG_MODEL or GRAPHRAG_REASONING_MODEL; the model offline only quotes"

BUILT_IN = {
    tool.name: tool
    for tool in (
        BuiltInTool(
            "knowledge_search",
            "searches the knowledge base for passages; the scope is injected, never the model's to fill in",
            _knowledge_search,
            _DOCUMENTS,
            is_default=True,
        ),
        BuiltInTool(
            "find_documents",
            "finds whole documents by title, file name or subject, or lists them",
            _find_documents,
            _DOCUMENTS,
            is_default=True,
        ),
        BuiltInTool(
            "read_document",
            "reads a document in order: a page, a section, or on from a place; says how to read on",
            _read_document,
            _DOCUMENTS,
            is_default=True,
        ),
        BuiltInTool(
            "summarize_documents",
            "sums up whole documents part by part; with the model `offline` it quotes the sentences that say most",
            _summarize_documents,
            _DOCUMENTS,
            is_default=True,
        ),
        BuiltInTool(
            "tabular_analysis",
            "computes with SQL over the tables in the knowledge base: csv, xlsx, parquet, jsonl",
            _tabular_analysis,
            f"a knowledge base of files and {_EXTRA}",
        ),
        BuiltInTool(
            "database_query",
            "asks a configured database with SQL that can only read",
            _database_query,
            "GRAPHRAG_DATABASES, the file of the databases that may be read",
            is_default=True,
        ),
        BuiltInTool(
            "web_search",
            "searches the public web through a provider",
            _web_search,
            "GRAPHRAG_WEB_SEARCH, the provider that is asked",
            is_default=True,
        ),
        BuiltInTool(
            "web_fetch",
            "reads a public web page or PDF, a part at a time",
            _web_fetch,
            "GRAPHRAG_WEB_FETCH=true",
            is_default=True,
        ),
        BuiltInTool(
            "run_python",
            "computes in Python without files or network; may search from inside",
            _run_python,
            f"GRAPHRAG_PYTHON other than off, and {_EXTRA}",
        ),
        BuiltInTool("reason", "thinks a question through with a model of its own", _reason, _A_MODEL),
        BuiltInTool("critique", "checks a draft once: unsupported, missing, contradicting", _critique, _A_MODEL),
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
