"""The configured databases, opened when first needed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from graphrag_agent.errors import MissingExtraError, SettingsError, ToolFailedError
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.tools._database_access import (
    Access,
    DatabaseConfig,
    access_of,
    refuse_unknown_names,
    url_text,
)
from graphrag_agent.tools._database_reading import (
    CONNECT_SECONDS,
    PostgresReader,
    Reader,
    SqliteReader,
    limit_transaction,
)
from graphrag_agent.tools._database_schema import TableInfo, read_tables, visible_part
from graphrag_agent.tools._sql_vocabulary import Dialect

SCHEMA_SECONDS = 300.0
"""A schema is read again after this long."""

INSPECTION_SECONDS = 10.0
"""Of one statement that reads the schema."""


class Database:
    """One configured database. Its methods that connect block."""

    def __init__(
        self, name: str, config: DatabaseConfig, *, folder: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name, self.config = name, config
        self._folder, self._clock = folder, clock
        self._lock = threading.Lock()
        self._opened: tuple[Dialect, Reader, Any] | None = None
        self._tables: tuple[float, tuple[TableInfo, ...]] | None = None
        self._visible: dict[Access, tuple[TableInfo, ...]] = {}

    @property
    def dialect(self) -> Dialect:
        """The database's SQL."""
        return self._open()[0]

    @property
    def reader(self) -> Reader:
        """What runs queries on it."""
        return self._open()[1]

    def tables(self, access: Access) -> tuple[TableInfo, ...]:
        """The tables that the access opens, with their visible columns. Raises SettingsError for a misspelt rule."""
        dialect, _, engine = self._open()
        with self._lock:
            now = self._clock()
            if self._tables is None or now - self._tables[0] > SCHEMA_SECONDS:
                found = self._inspected(engine)
                names = {table.shown_name: [column.name for column in table.columns] for table in found}
                refuse_unknown_names(self.name, self.config.access, names, dialect)
                self._tables, self._visible = (now, found), {}
            if access not in self._visible:
                self._visible[access] = visible_part(self._tables[1], access, dialect)
            return self._visible[access]

    def _open(self) -> tuple[Dialect, Reader, Any]:
        with self._lock:
            if self._opened is None:
                self._opened = _opened(self.name, self.config, self._folder)
            return self._opened

    def _inspected(self, engine: Any) -> tuple[TableInfo, ...]:
        from sqlalchemy import inspect
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with engine.connect() as connection:
                if self._opened is not None and self._opened[0] == "sqlite":
                    return read_tables(inspect(connection), [None], written="main")
                connection = connection.execution_options(postgresql_readonly=True)
                with connection.begin():
                    limit_transaction(connection, INSPECTION_SECONDS)
                    return read_tables(inspect(connection), self.config.schemas)
        except SQLAlchemyError:
            raise ToolFailedError(
                f"the database {self.name!r} can't be reached now; say so, or try once more", retryable=True
            ) from None


class Databases:
    """All configured databases, and who may use which."""

    def __init__(self, configs: Mapping[str, DatabaseConfig], *, folder: str | Path = ".") -> None:
        """`folder` is what relative paths of SQLite files start from: the configuration file's."""
        self._databases = {name: Database(name, config, folder=Path(folder)) for name, config in configs.items()}

    def open_to(self, scope: Scope) -> dict[str, tuple[Database, Access]]:
        """Name -> database and access, for the databases that the scope's principal may use. Connects to none."""
        found = {name: (database, access_of(database.config, scope)) for name, database in self._databases.items()}
        return {name: (database, access) for name, (database, access) in found.items() if access is not None}


def _opened(name: str, config: DatabaseConfig, folder: Path) -> tuple[Dialect, Reader, Any]:
    try:
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError
    except ImportError:
        raise MissingExtraError("database_query", "tools") from None
    try:
        url = make_url(url_text(name, config))
    except ArgumentError:
        raise SettingsError(f"database {name!r}: its url is none; write sqlite:///FILE or postgresql://...") from None
    match url.get_backend_name():
        case "sqlite":
            return _opened_sqlite(name, url, folder)
        case "postgresql":
            return _opened_postgres(url)
        case other:
            raise SettingsError(f"database {name!r}: {other} is not supported; there are sqlite and postgresql")


def _opened_sqlite(name: str, url: Any, folder: Path) -> tuple[Dialect, Reader, Any]:
    import sqlite3

    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    if not url.database or url.database == ":memory:" or url.query or url.host:
        raise SettingsError(f"database {name!r}: write its url as sqlite:///FILE")
    file = (folder / url.database).resolve()
    if not file.is_file():
        raise SettingsError(f"database {name!r}: the file of its url is not there")
    reader = SqliteReader(file)
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(reader.uri, uri=True), poolclass=NullPool)
    return "sqlite", reader, engine


def _opened_postgres(url: Any) -> tuple[Dialect, Reader, Any]:
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import NullPool

    try:
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            poolclass=NullPool,  # nobody closes it, and a forked process must not share a connection
            hide_parameters=True,
            connect_args={"connect_timeout": CONNECT_SECONDS, "prepare_threshold": None},
        )
    except ImportError:
        raise MissingExtraError("a PostgreSQL database", "postgres") from None
    event.listen(engine, "connect", _keep_as_text)
    return "postgres", PostgresReader(engine), engine


def _keep_as_text(connection: Any, _: Any) -> None:
    """Python has no date called infinity and no interval of a month, and would round numbers in JSON."""
    from psycopg.types.string import TextLoader

    for type_name in ("date", "time", "timetz", "timestamp", "timestamptz", "interval", "json", "jsonb", "record"):
        connection.adapters.register_loader(type_name, TextLoader)
