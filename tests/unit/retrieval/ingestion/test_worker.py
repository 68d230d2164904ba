import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.parsing.worker import ParserProcess

PROGRAM = """
import json, os, sys, time
while line := sys.stdin.buffer.readline():
    data = sys.stdin.buffer.read(json.loads(line)["size"])
    if data == b"hang":
        time.sleep(60)
    if data == b"die":
        os.abort()
    if data == b"refuse":
        answer = {"error": "locked; unlock it"}
    else:
        answer = {"size": len(data), "pid": os.getpid(), "keys": "SOME_API_KEY" in os.environ}
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def extract(tmp_path: Path) -> Iterator[ParserProcess]:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    process = ParserProcess(program, timeout_seconds=2)
    yield process
    process.close()


def test_one_process_serves_all_documents_from_all_threads(extract: ParserProcess) -> None:
    answers: list[dict[str, object]] = []
    threads = [threading.Thread(target=lambda: answers.append(extract(".docx", b"x" * 300_000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer["size"] for answer in answers] == [300_000] * 4
    assert len({answer["pid"] for answer in answers}) == 1


def test_a_refusal_is_the_reason(extract: ParserProcess) -> None:
    with pytest.raises(ParseError, match=r"^locked; unlock it$"):
        extract(".docx", b"refuse")


@pytest.mark.parametrize(
    ("data", "reason"), [(b"die", "broke down .* split it"), (b"hang", "more than 2 seconds to read; split it")]
)
def test_a_process_that_dies_or_hangs_is_replaced(extract: ParserProcess, data: bytes, reason: str) -> None:
    before = extract(".docx", b"x")["pid"]
    with pytest.raises(ParseError, match=reason):
        extract(".docx", data)
    assert extract(".docx", b"x")["pid"] != before
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)


def test_the_process_gets_no_keys(extract: ParserProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    assert extract(".docx", b"x")["keys"] is False


def test_a_forked_copy_has_a_process_of_its_own(extract: ParserProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = extract(".docx", b"x")["pid"]
    shared = extract._process
    monkeypatch.setattr(os, "getpid", lambda: -1)
    other = extract(".docx", b"x")["pid"]
    extract.close()
    assert other != mine
    assert shared is not None and shared.poll() is None
    shared.communicate()
