"""For all tests: no network but loopback, no keys, no settings of the machine's, JSON-like values in checkpoints.

With BLOCKBUSTER=1 in the environment every blocking call below our code that is made on an event loop raises.
"""

import os
from collections.abc import Iterator

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import HealthCheck, settings

from tests.postgres_server import postgres_server

__all__ = ["postgres_server"]

os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"  # read when langgraph is imported
PREFIXES = ("GRAPHRAG_", "OPENAI_", "LANGSMITH_", "LANGCHAIN_", "CO_API_", "QDRANT_", "TAVILY_", "SERPER_")

# a busy machine is no failure; CI tries the same examples each time
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("here"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Settings and keys of whoever runs the tests don't count."""
    for name in [name for name in os.environ if name.startswith(PREFIXES)]:
        monkeypatch.delenv(name)
    yield


@pytest.fixture(autouse=os.environ.get("BLOCKBUSTER") == "1")
def watched() -> Iterator[None]:
    """Every blocking call below our code raises, if it is made on an event loop."""
    with blockbuster_ctx("graphrag_agent"):
        yield
