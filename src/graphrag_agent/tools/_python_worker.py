"""The program inside the sandbox: runs one piece of code, and speaks with the agent in lines of JSON.

It is read as text and started by `python -I -c`, so it imports nothing of the package. All that it says is hostile to
the agent: the code it runs can say the same.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import json
import linecache
import os
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

FILE_NAME = "<code>"


class SearchError(RuntimeError):
    """A search that brings nothing; the code may catch it."""


class Printed:
    """Standard output and error of the code: the beginning is kept, the rest counted, a flood ended."""

    encoding = "utf-8"

    def __init__(self, limit: int, most: int) -> None:
        self.text, self.count = "", 0
        self._limit, self._most = limit, most

    def write(self, text: str) -> int:
        """As a file's."""
        self.count += len(text)
        self.text += text[: max(0, self._limit - len(self.text))]
        if self.count > self._most:
            raise RuntimeError(f"printed more than {self._most} characters; print less")
        return len(text)

    def flush(self) -> None:
        """As a file's."""


def serve() -> None:
    """Read the order from standard input, run it, write what it came to."""
    reading, writing = os.fdopen(os.dup(0), "r", encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # ends with the launcher, however that ends
    order = json.loads(reading.readline())
    for name, value in order["limits"].items():
        resource.setrlimit(getattr(resource, name), (value, value))
    printed = Printed(order["printed"], order["most_printed"])

    def search(query: str, top_k: int = 5) -> list[dict[str, Any]]:
        """Passages of the knowledge base, best first."""
        writing.write(json.dumps({"search": [query, top_k]}) + "\n")
        writing.flush()
        answer = json.loads(reading.readline())
        if "refused" in answer:
            raise SearchError(answer["refused"])
        return list(answer["hits"])

    # a warning's usual text names files of this machine
    warnings.formatwarning = lambda message, category, *_, **__: f"{category.__name__}: {message}\n"
    told: dict[str, Any] = {"result": "", "error": ""}
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            value = run(order["code"], {"__name__": "__main__", "search": search})
            told["result"] = "" if value is None else repr(value)[: order["result"] + 1]
        except BaseException as error:  # SystemExit and KeyboardInterrupt of the code's too
            told["error"] = cut_middle("".join(told_error(error)), order["error"])
    writing.write(json.dumps({**told, "printed": printed.text, "count": printed.count}) + "\n")
    writing.flush()
    os._exit(0)  # nothing that the code left to be run at the end is run


def run(code: str, names: dict[str, Any]) -> Any:
    """The value of the last line if it is an expression, else None."""
    linecache.cache[FILE_NAME] = (len(code), None, code.splitlines(keepends=True), FILE_NAME)
    tree = ast.parse(code, FILE_NAME)
    end = tree.body[-1] if tree.body else None
    if not isinstance(end, ast.Expr):
        exec(compile(tree, FILE_NAME, "exec"), names)  # noqa: S102  # what this process is for
        return None
    tree.body.pop()
    exec(compile(tree, FILE_NAME, "exec"), names)  # noqa: S102
    return eval(compile(ast.Expression(end.value), FILE_NAME, "eval"), names)  # noqa: S307


def cut_middle(text: str, limit: int) -> str:
    """The text, or its beginning and its end."""
    return text if len(text) <= limit else f"{text[: limit // 2]}…{text[-(limit // 2 - 1) :]}"


def told_error(error: BaseException) -> Iterator[str]:
    """The traceback with the code's own lines, not those of libraries."""
    told = traceback.TracebackException.from_exception(error)
    told.stack = traceback.StackSummary.from_list([frame for frame in told.stack if frame.filename == FILE_NAME])
    yield from told.format(chain=False)


if __name__ == "__main__":
    sys.setrecursionlimit(1_000)
    serve()
