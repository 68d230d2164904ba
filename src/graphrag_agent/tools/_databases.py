"""The configured databases, opened when first needed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from graphrag_agent.errors import MissingExtraError, SettingsError, ToolFailedError
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.tools._database_access import (
    Access,
    DatabaseConfig,
    access_of,
    named_in,
    refuse_unknown_names,
    url_text,
)
from graphrag_agent.tools._database_reading import CONNECT_SECONDS, PostgresReader, Reader, SqliteReader, Stop
from graphrag_agent.tools._database_schema import TableInfo, visible_part
from graphrag_agent.tools._sql_tables import named
from graphrag_agent.tools._sql_vocabulary import Dialect

logger = logging.getLogger(__name__)

SCHEMA_SECONDS = 300.0
"""A schema is read again after this long."""


DEAD_LINE = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""A server that is cut off without a word, as by a firewall, would hold a thread for hours; so it is given up after
about 25 s."""


class Database:
    """One configured database. Its methods that connect block."""

    def __init__(
        self, name: str, config: DatabaseConfig, *, folder: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name, self.config = name, config
        self._folder, self._clock = folder, clock
        self._schema_lock = threading.Lock()
        self._tables: tuple[float, tuple[TableInfo, ...]] | None = None
        self._visible: dict[Access, tuple[TableInfo, ...]] = {}

    @cached_property
    def reader(self) -> Reader:
        """What runs queries on it; it doesn't connect yet. Raises SettingsError for a URL that can't be used."""
        return _reader(self.name, self.config, self._folder)

    def tables(self, access: Access, stop: Stop) -> tuple[TableInfo, ...]:
        """The tables that the access opens, with their visible columns. Raises ToolFailedError for a misspelt rule."""
        reader = self.reader
        with self._schema_lock:
            stop.check()  # it may have waited long
            now = self._clock()
            if self._tables is None or now - self._tables[0] > SCHEMA_SECONDS:
                found = self._inspected(reader, stop)
                self._check_rules({table.shown_name: table.columns for table in found}, reader.dialect)
                self._tables, self._visible = (now, found), {}
            if access not in self._visible:
                self._visible[access] = visible_part(self._tables[1], access, reader.dialect)
            return self._visible[access]

    def _check_rules(self, columns: Mapping[str, Sequence[str]], dialect: Dialect) -> None:
        try:
            refuse_unknown_names(self.name, self.config.access, columns, dialect)
        except SettingsError as error:
            logger.error("%s", error)  # a hidden column's name is no business of who asks
            raise ToolFailedError(
                f"the database {self.name!r} is not set up right, its owner's log says where; answer without it"
            ) from None

    def _inspected(self, reader: Reader, stop: Stop) -> tuple[TableInfo, ...]:
        from sqlalchemy.exc import SQLAlchemyError

        try:
            said = named_in(self.config.access, reader.dialect)
            return reader.inspected(self.config.schemas, lambda table: named(table, reader.dialect) in said, stop)
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


def _reader(name: str, config: DatabaseConfig, folder: Path) -> Reader:
    try:
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError
    except ImportError:
        raise MissingExtraError("database_query", "tools") from None
    try:
        url = make_url(url_text(name, config))
    except ArgumentError:
        raise SettingsError(
            f"database {name!r}: its url can't be read; write sqlite:///FILE or postgresql://..."
        ) from None
    match url.get_backend_name():
        case "sqlite":
            return _sqlite_reader(name, url, folder)
        case "postgresql":
            return _postgres_reader(url)
        case other:
            raise SettingsError(f"database {name!r}: {other} is not supported; there are sqlite and postgresql")


def _sqlite_reader(name: str, url: Any, folder: Path) -> Reader:
    if not url.database or url.database == ":memory:" or url.query or url.host:
        raise SettingsError(f"database {name!r}: write its url as sqlite:///FILE")
    file = (folder / url.database).resolve()
    if not file.is_file():
        raise SettingsError(f"database {name!r}: the file of its url is not there")
    return SqliteReader(file)


def _postgres_reader(url: Any) -> Reader:
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import NullPool

    try:
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            poolclass=NullPool,  # nobody closes it, and a forked process must not share a connection
            hide_parameters=True,
            connect_args={
                "connect_timeout": CONNECT_SECONDS,
                "prepare_threshold": None,
                **DEAD_LINE,
                "client_encoding": "utf8",  # else that of the database, which may be none, or lack a query's letters
            },
        )
    except ImportError:
        raise MissingExtraError("a PostgreSQL database", "postgres") from None
    event.listen(engine, "connect", _keep_as_text)
    return PostgresReader(engine)


def _keep_as_text(connection: Any, _: Any) -> None:
    """Python has no date called infinity and no interval of a month, and would round numbers in JSON."""
    from psycopg.types.string import TextLoader

    for type_name in ("date", "time", "timetz", "timestamp", "timestamptz", "interval", "json", "jsonb", "record"):
        connection.adapters.register_loader(type_name, TextLoader)
