"""The program of a worker process: parses a file, cuts it and counts the terms of its passages.

A request is a line of JSON (`name`, `size`) and the file's bytes; the answer is one line of JSON that `answer.py`
reads. It shares no memory with us and sends no objects, only JSON, so whatever a hostile file does ends here. It ends
with its input, and a file that takes too long ends it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from graphrag_agent.documents import Chunk
from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.chunking import Passage, split_document
from graphrag_agent.retrieval.ingestion.parsing.registry import parse_data
from graphrag_agent.retrieval.ingestion.workers.limits import MAX_ANSWER_BYTES, MAX_MEMORY_BYTES, PARSE_SECONDS
from graphrag_agent.retrieval.tokenizer import count_terms

_SPARE_SECONDS = 5
"""Our starter kills us in time; where it is gone, the alarm does, this much later."""
_WORN_BYTES = MAX_MEMORY_BYTES // 3
"""A worker that once needed more than this may not give it back, so it ends after its answer."""


def serve(requests: BinaryIO, answers: BinaryIO, answer: Callable[[str, bytes], bytes], seconds: float) -> None:
    """Answer requests until there are no more, or a file has left too little memory for the next."""
    while line := requests.readline():
        request = json.loads(line)
        _set_alarm(int(seconds) + _SPARE_SECONDS)
        answers.write(answer(request["name"], requests.read(request["size"])) + b"\n")
        answers.flush()
        _set_alarm(0)
        if _peak_memory() > _WORN_BYTES:
            return


def answer_file(name: str, data: bytes) -> bytes:
    """What `answer.py` reads: the parsed file, or why it can't be parsed."""
    try:
        # halves of surrogate pairs can't be stored; a question mark keeps all offsets
        answer = json.dumps(_prepared(name, data), ensure_ascii=False).encode("utf-8", "replace")
        if len(answer) > MAX_ANSWER_BYTES:
            raise ParseError("has too much text for one document; split it into smaller files")
    except ParseError as error:
        return json.dumps({"error": str(error)}).encode()
    except MemoryError:
        return json.dumps({"error": "needs more than 1 GB of memory; split it into smaller files"}).encode()
    return answer


def _prepared(name: str, data: bytes) -> dict[str, Any]:
    parsed = parse_data(name, data)
    passages = [
        [found.start, found.end, found.heading, found.page, count_terms(_index_text(found, parsed.title))]
        for found in split_document(parsed)
    ]
    return {"title": parsed.title, "source_type": parsed.source_type, "text": parsed.text, "passages": passages}


def _index_text(passage: Passage, title: str) -> str:
    chunk = Chunk(
        *("", "", "", "", (), "", ""),  # ids and place; the index text has none of them
        title=title,
        heading=passage.heading,
        page=passage.page,
        position=0,
        text=passage.text,
        start=passage.start,
        end=passage.end,
    )
    return chunk.index_text


def _set_alarm(seconds: int) -> None:
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)  # nobody handles it, so it ends even native code


def _peak_memory() -> int:
    """In bytes; 0 where nobody knows."""
    with suppress(OSError, ValueError, StopIteration), Path("/proc/self/status").open() as lines:
        # not getrusage: on Linux it begins with the peak of the process that started us, and any worker would be worn
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _limit_memory(most: int) -> None:
    try:
        import resource
    except ImportError:  # no such limit on Windows; the time limit holds
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))  # nobody may raise a limit
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(
    answer: Callable[[str, bytes], bytes] = answer_file,
    *,
    memory_bytes: int | None = None,
    seconds: float | None = None,
) -> None:
    """Serve over standard input and output, which parsers then no longer write to.

    `answer` makes one line, without its end, from a request's name and bytes; without limits of its own those of a
    file hold.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _limit_memory(memory_bytes or MAX_MEMORY_BYTES)
    serve(sys.stdin.buffer, answers, answer, seconds or PARSE_SECONDS)


if __name__ == "__main__":
    main()
