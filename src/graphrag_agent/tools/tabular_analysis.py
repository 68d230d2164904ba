"""The tool that computes over the tables of a knowledge base with SQL."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import Annotated, Any, NamedTuple, Protocol, runtime_checkable

from langchain_core.tools import InjectedToolArg, StructuredTool
from pydantic import Field

from graphrag_agent.citations import Evidence
from graphrag_agent.documents import Document
from graphrag_agent.errors import (
    DocumentNotFoundError,
    KnowledgeBaseError,
    MissingExtraError,
    ToolArgumentError,
    ToolError,
    ToolFailedError,
)
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.tools._sql_tables import refuse_name
from graphrag_agent.tools._table_answer import (
    CALL_SECONDS,
    QUERY_SECONDS,
    FileAsked,
    ProblemTold,
    TableAnswer,
    TableJob,
    TableTold,
    cut,
)
from graphrag_agent.tools._table_names import SHEET_SEPARATOR, file_names
from graphrag_agent.tools._table_process import run_job
from graphrag_agent.tools._table_query import names_in
from graphrag_agent.tools._table_suffixes import has_tables, suffix_of
from graphrag_agent.tools._table_view import describe_table, place_in_file, render_result
from graphrag_agent.tools.evidence_message import render_evidence
from graphrag_agent.tools.made_evidence import made_evidence
from graphrag_agent.tools.spec import ToolSpec

TIMEOUT_SECONDS = 60.0
"""With the wait for a call before it, and the start of the process."""
MAX_FILE_BYTES = 50_000_000
"""Of one file, and of all that a query reads."""
MAX_DESCRIBED_FILES = 8
"""Files that a call without SQL opens; the others are named."""
MAX_DESCRIBED_BYTES = 20_000_000
"""After so many no further file is opened for its description."""
MAX_DESCRIPTION_CHARACTERS = 9_000
MAX_SQL_CHARACTERS = 5_000
_MAX_NAMES = 30
_NO_TABLES = TableAnswer(tables=[], problems=[])
_HEADING_CHARACTERS = 90


@runtime_checkable
class HasOriginals(Protocol):
    """What the tool needs of a knowledge base."""

    async def adocuments(self, scope: Scope | None = None) -> list[Document]:
        """Those of the scope, without their text."""
        ...

    async def aoriginal(self, document_id: str, *, max_bytes: int, scope: Scope | None = None) -> bytes:
        """The file that a document of the scope was made from, as it was then."""
        ...


class _TableFile(NamedTuple):
    """A document with tables, and the name that its table, or each of its sheets' tables in front, has."""

    name: str
    document: Document

    def has(self, table: str) -> bool:
        """Whether a table of that name may be in it."""
        return table == self.name or table.startswith(self.name + SHEET_SEPARATOR)


def build_tabular_analysis(knowledge: HasOriginals, *, query_seconds: float = QUERY_SECONDS) -> ToolSpec:
    """A `tabular_analysis` over this knowledge base; the scope of each call is injected by the loop.

    Each call reads the files anew, in a process that ends with it. Raises MissingExtraError without DuckDB or sqlglot.
    """
    if find_spec("duckdb") is None or find_spec("sqlglot") is None:
        raise MissingExtraError("tabular_analysis", "tools")

    async def tabular_analysis(
        scope: Annotated[Any, InjectedToolArg],
        sql: Annotated[
            str | None,
            Field(
                max_length=MAX_SQL_CHARACTERS,
                description="One SELECT in DuckDB's SQL over the tables; leave it out to see tables and columns",
            ),
        ] = None,
        tables: Annotated[
            list[str] | None,
            Field(max_length=20, description="Without sql: only these tables, by name or by document id"),
        ] = None,
    ) -> tuple[str, dict[str, Any]]:
        """Compute with SQL over the tables in the knowledge base: its CSV, TSV, XLSX, Parquet, JSON and JSONL files.

        Use it for every figure that takes more than one row: sums, averages, counts, rankings, shares, joins. Call it
        without sql first: it tells the tables, their columns with types, and sample rows. Then send one SELECT, which
        names what it computes with AS, in the words of the question. Don't use it for prose, nor to find one fact that
        knowledge_search finds. The result has an id; cite it in the answer as [id].
        """
        files = await _files(knowledge, scope)
        if not files:
            return render_evidence(
                [], note="There are no tables here: no CSV, TSV, XLSX, Parquet, JSON or JSONL document."
            )
        if sql is None:
            return await _described(knowledge, scope, files, tables or ())
        return await _computed(knowledge, scope, files, sql, query_seconds)

    tool = StructuredTool.from_function(
        coroutine=tabular_analysis,
        name="tabular_analysis",
        description=inspect.cleandoc(tabular_analysis.__doc__ or ""),
        response_format="content_and_artifact",
    )
    return ToolSpec(tool, family="tables", side_effect_free=True, timeout_seconds=TIMEOUT_SECONDS)


async def _files(knowledge: HasOriginals, scope: Scope) -> list[_TableFile]:
    documents = [document for document in await knowledge.adocuments(scope) if has_tables(document.source)]
    documents.sort(key=lambda document: (document.source, document.id))
    return list(map(_TableFile, file_names(document.source for document in documents), documents))


def _chosen(files: Sequence[_TableFile], wanted: Sequence[str]) -> Sequence[_TableFile]:
    """Those that may have what is wanted, or all. Raises ToolArgumentError for a name that none has."""
    if not wanted:  # some models send an empty list for all
        return files
    for name in wanted:
        if not any(file.document.id == name or file.has(name.casefold()) for file in files):
            raise refuse_name("table", name, [file.name for file in files])
    names = [name.casefold() for name in wanted]
    return [file for file in files if file.document.id in wanted or any(map(file.has, names))]


def _selected(tables: Sequence[TableTold], files: Sequence[_TableFile], wanted: Sequence[str]) -> Sequence[TableTold]:
    """The wanted ones, or all. Raises ToolArgumentError for a sheet that its file doesn't have."""
    if not wanted:
        return tables
    names = {name.casefold() for name in wanted}
    for at, file in enumerate(files):
        own = [table.name for table in tables if table.file == at]
        for name in names - {file.name, *own}:
            if own and file.has(name):
                raise refuse_name("table", name, own)
    whole = {at for at, file in enumerate(files) if file.name in names or file.document.id in wanted}
    return [table for table in tables if table.name in names or table.file in whole]


async def _described(
    knowledge: HasOriginals, scope: Scope, files: Sequence[_TableFile], wanted: Sequence[str]
) -> tuple[str, dict[str, Any]]:
    blobs: list[bytes] = []
    read: list[_TableFile] = []
    notes: list[str] = []
    not_shown: list[str] = []
    for at, file in enumerate(_chosen(files, wanted)):
        if at >= MAX_DESCRIBED_FILES or sum(map(len, blobs)) > MAX_DESCRIBED_BYTES:
            not_shown.append(file.name)
            continue
        try:
            blobs.append(await _original(knowledge, scope, file))
            read.append(file)
        except ToolError as error:
            notes.append(f"{file.name}: {error}.")
    answer = await run_job(TableJob(files=_asked(read, blobs)), blobs, seconds=CALL_SECONDS) if read else _NO_TABLES
    notes += [f"{read[told.file or 0].name}: {told.text}." for told in answer.problems]
    evidence: list[Evidence] = []
    left = MAX_DESCRIPTION_CHARACTERS
    for table in _selected(answer.tables, read, wanted):
        found = _description(read, table)
        if evidence and left < len(found.text):
            not_shown.append(table.name)
            continue
        left -= len(found.text)
        evidence.append(found)
    if not_shown:
        notes.append(f"More tables, which you can name in `tables`: {_listed(not_shown)}.")
    return render_evidence(evidence, note=" ".join(notes))


def _description(files: Sequence[_TableFile], table: TableTold) -> Evidence:
    document = files[table.file].document
    return made_evidence(
        f"table:{document.id}:{table.name}",
        title=document.title,
        source=place_in_file(document.source, table, table.columns),
        text=describe_table(table),
        heading=table.sheet,
        is_computed=True,
    )


async def _computed(
    knowledge: HasOriginals, scope: Scope, files: Sequence[_TableFile], sql: str, seconds: float
) -> tuple[str, dict[str, Any]]:
    names = await asyncio.to_thread(names_in, sql)
    named = [file for file in files if any(map(file.has, names))]
    blobs: list[bytes] = []
    for file in named:
        blobs.append(await _original(knowledge, scope, file))
        if sum(map(len, blobs)) > MAX_FILE_BYTES:
            raise ToolFailedError(f"{_listed(file.name for file in named)}: too large for one query; take fewer tables")
    job = TableJob(
        files=_asked(named, blobs),
        sql=sql,
        others=[file.name for file in files if file not in named],
        query_seconds=seconds,
    )
    answer = await run_job(job, blobs, seconds=CALL_SECONDS)
    for problem in answer.problems:
        raise _failure(problem, named, answer.tables)
    result = answer.result
    if result is None or not result.read:
        raise ToolArgumentError(f"the query reads no table; there is: {_listed(file.name for file in files)}")
    read = [(answer.tables[told.table], told.columns) for told in result.read]
    documents = {document.id: document for document in (named[table.file].document for table, _ in read)}
    places = [
        place_in_file(named[table.file].document.source, table, [table.columns[at] for at in columns])
        for table, columns in read
    ]
    found = made_evidence(
        f"table:{','.join(documents)}:{result.sql}",
        title=", ".join(dict.fromkeys(document.title for document in documents.values())),
        source=", ".join(places),
        text=render_result(result, [table.name for table, _ in read]),
        heading=cut(result.sql, _HEADING_CHARACTERS),
        is_computed=True,
    )
    return render_evidence([found])


async def _original(knowledge: HasOriginals, scope: Scope, file: _TableFile) -> bytes:
    try:
        return await knowledge.aoriginal(file.document.id, max_bytes=MAX_FILE_BYTES, scope=scope)
    except DocumentNotFoundError:  # deleted a moment ago
        raise ToolFailedError(f"the table {file.name!r} is no longer there; list the tables again") from None
    except KnowledgeBaseError as error:
        raise ToolFailedError(str(error)) from error


def _asked(files: Sequence[_TableFile], blobs: Sequence[bytes]) -> list[FileAsked]:
    return [
        FileAsked(name=file.name, suffix=suffix_of(file.document.source), size=len(data))
        for file, data in zip(files, blobs, strict=True)
    ]


def _failure(problem: ProblemTold, files: Sequence[_TableFile], tables: Sequence[TableTold]) -> ToolError:
    if problem.kind == "query":
        return ToolArgumentError(problem.text)
    if problem.kind == "sql":
        known = "; ".join(f"{table.name}({_columns(table)})" for table in tables)
        return ToolArgumentError(f"{problem.text}. Tables of the query: {cut(known, 1_500)}")
    if problem.file is not None:
        file = files[problem.file]
        return ToolFailedError(f"the table {file.name!r} ({file.document.source!r}) can't be read: {problem.text}")
    return ToolFailedError(f"the query {problem.text}; filter or aggregate earlier, and join on a column")


def _columns(table: TableTold) -> str:
    return ", ".join(f"{column.name} {column.sql_type}" for column in table.columns)


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _MAX_NAMES} more" if len(listed) > _MAX_NAMES else ""
    return ", ".join(listed[:_MAX_NAMES]) + more
