"""The tool that computes over the tables of a knowledge base with SQL."""

from __future__ import annotations

import asyncio
import difflib
import inspect
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import Annotated, Any, NamedTuple, Protocol

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
from graphrag_agent.tools._table_answer import FileAsked, ProblemTold, TableAnswer, TableJob, TableTold, cut
from graphrag_agent.tools._table_names import SHEET_SEPARATOR, file_names
from graphrag_agent.tools._table_process import run_job
from graphrag_agent.tools._table_sql import Reads, checked_query, reads_of
from graphrag_agent.tools._table_suffixes import has_tables, suffix_of
from graphrag_agent.tools._table_view import describe_table, place_in_file, render_result
from graphrag_agent.tools.evidence_message import render_evidence
from graphrag_agent.tools.made_evidence import made_evidence
from graphrag_agent.tools.spec import ToolSpec

CALL_SECONDS = 25.0
"""For reading the files and the query, of which DuckDB gets ten."""
TIMEOUT_SECONDS = 40.0
"""With the wait for other calls' processes."""
MAX_FILE_BYTES = 50_000_000
MAX_DESCRIBED_FILES = 8
"""Files that a call without SQL opens; the others are named."""
MAX_DESCRIPTION_CHARACTERS = 9_000
MAX_SQL_CHARACTERS = 5_000
_MAX_NAMES = 30
_HEADING_CHARACTERS = 90


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


def build_tabular_analysis(knowledge: HasOriginals) -> ToolSpec:
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
        """Compute with SQL over the tables in the knowledge base: its CSV, TSV, XLSX, JSON and JSONL files.

        Use it for every figure that takes more than one row: sums, averages, counts, rankings, shares, joins. Call it
        without sql first: it tells the tables, their columns with types, and sample rows. Then send one SELECT. Don't
        use it for prose, nor to find one fact that knowledge_search finds. The result has an id; cite it in the answer
        as [id].
        """
        files = await _files(knowledge, scope)
        if not files:
            return render_evidence([], note="There are no tables here: no CSV, TSV, XLSX, JSON or JSONL document.")
        if sql is None:
            return await _described(knowledge, scope, _chosen(files, tables))
        return await _computed(knowledge, scope, files, sql)

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


def _chosen(files: Sequence[_TableFile], wanted: Sequence[str] | None) -> Sequence[_TableFile]:
    if wanted is None:
        return files
    unknown = [
        name for name in wanted if not any(file.document.id == name or file.has(name.casefold()) for file in files)
    ]
    if unknown:
        raise _unknown_table(unknown[0], files)
    names = [name.casefold() for name in wanted]
    return [file for file in files if file.document.id in wanted or any(map(file.has, names))]


async def _described(knowledge: HasOriginals, scope: Scope, files: Sequence[_TableFile]) -> tuple[str, dict[str, Any]]:
    opened = files[:MAX_DESCRIBED_FILES]
    blobs: list[bytes] = []
    read: list[_TableFile] = []
    notes: list[str] = []
    for file in opened:
        try:
            blobs.append(await _original(knowledge, scope, file))
            read.append(file)
        except ToolError as error:
            notes.append(f"{file.name}: {error}.")
    answer = await _answer(read, blobs) if read else TableAnswer(tables=[], problems=[])
    notes += [f"{_of(read, problem).name}: {problem.text}." for problem in answer.problems]
    evidence: list[Evidence] = []
    left = MAX_DESCRIPTION_CHARACTERS
    not_shown = [file.name for file in files[MAX_DESCRIBED_FILES:]]
    for table in answer.tables:
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
    document = _file_of(files, table).document
    return made_evidence(
        f"table:{document.id}:{table.name}",
        title=document.title,
        source=place_in_file(document.source, table, table.columns),
        text=describe_table(table),
        heading=table.sheet,
    )


async def _computed(
    knowledge: HasOriginals, scope: Scope, files: Sequence[_TableFile], sql: str
) -> tuple[str, dict[str, Any]]:
    query = await asyncio.to_thread(checked_query, sql)
    reads = await asyncio.to_thread(reads_of, query)
    used = [file for file in files if any(map(file.has, reads.tables))]
    for name in reads.tables:
        if name not in reads.defined and not any(file.has(name) for file in files):
            raise _unknown_table(name, files)
    if not used:
        raise ToolArgumentError(f"the query reads no table; there is: {_listed(file.name for file in files)}")
    blobs = [await _original(knowledge, scope, file) for file in used]
    answer = await _answer(used, blobs, query)
    for problem in answer.problems:
        raise _failure(problem, used, answer.tables)
    if answer.result is None:
        raise ToolFailedError("the query gave no result")
    read = [table for table in answer.tables if table.name.casefold() in reads.tables]
    documents = list(dict.fromkeys(_file_of(used, table).document.id for table in read))
    return render_evidence(
        [
            made_evidence(
                f"table:{','.join(documents)}:{query}",
                title=", ".join(dict.fromkeys(_file_of(used, table).document.title for table in read)),
                source=", ".join(_read_place(used, table, reads) for table in read),
                text=render_result(query, answer.result),
                heading=cut(query, _HEADING_CHARACTERS),
            )
        ]
    )


def _read_place(files: Sequence[_TableFile], table: TableTold, reads: Reads) -> str:
    named = [column for column in table.columns if reads.columns is None or column.name.casefold() in reads.columns]
    return place_in_file(_file_of(files, table).document.source, table, named or table.columns)


async def _original(knowledge: HasOriginals, scope: Scope, file: _TableFile) -> bytes:
    try:
        return await knowledge.aoriginal(file.document.id, max_bytes=MAX_FILE_BYTES, scope=scope)
    except DocumentNotFoundError:  # deleted a moment ago
        raise ToolFailedError(f"the table {file.name!r} is no longer there; list the tables again") from None
    except KnowledgeBaseError as error:
        raise ToolFailedError(str(error)) from error


async def _answer(files: Sequence[_TableFile], blobs: Sequence[bytes], sql: str | None = None) -> TableAnswer:
    asked = [
        FileAsked(name=file.name, suffix=suffix_of(file.document.source), size=len(data))
        for file, data in zip(files, blobs, strict=True)
    ]
    answer = await run_job(TableJob(files=asked, sql=sql), blobs, seconds=CALL_SECONDS)
    numbers = [table.file for table in answer.tables] + [problem.file or 0 for problem in answer.problems]
    if max(numbers, default=0) >= len(files):
        raise ToolFailedError("a file made its reader answer nonsense; leave that file out")
    return answer


def _failure(problem: ProblemTold, files: Sequence[_TableFile], tables: Sequence[TableTold]) -> ToolError:
    if problem.kind == "sql":
        known = "; ".join(f"{table.name}({_columns(table)})" for table in tables)
        return ToolArgumentError(f"{problem.text}. Tables of the query: {cut(known, 1_500)}")
    if problem.file is not None:
        file = _of(files, problem)
        return ToolFailedError(f"the table {file.name!r} ({file.document.source!r}) can't be read: {problem.text}")
    return ToolFailedError(f"the query {problem.text}; filter or aggregate earlier, and join on a column")


def _columns(table: TableTold) -> str:
    return ", ".join(f"{column.name} {column.sql_type}" for column in table.columns)


def _unknown_table(name: str, files: Sequence[_TableFile]) -> ToolArgumentError:
    names = [file.name for file in files]
    close = difflib.get_close_matches(name, names, n=3)
    hint = f"; did you mean {_listed(close)}?" if close else ""
    return ToolArgumentError(f"there is no table {cut(name, 60)!r}{hint}. Tables are: {_listed(names)}")


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _MAX_NAMES} more" if len(listed) > _MAX_NAMES else ""
    return ", ".join(listed[:_MAX_NAMES]) + more


def _file_of(files: Sequence[_TableFile], table: TableTold) -> _TableFile:
    return files[table.file]


def _of(files: Sequence[_TableFile], problem: ProblemTold) -> _TableFile:
    return files[problem.file or 0]
