"""For all tests: no network but loopback, no keys, no settings of the machine's, JSON-like values in checkpoints."""

import os
from collections.abc import Iterator

import pytest

os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"  # read when langgraph is imported
PREFIXES = ("GRAPHRAG_", "OPENAI_", "LANGSMITH_", "LANGCHAIN_", "CO_API_")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Settings and keys of whoever runs the tests don't count."""
    for name in [name for name in os.environ if name.startswith(PREFIXES)]:
        monkeypatch.delenv(name)
    yield
