"""The configured databases, and which of their tables and columns a principal may see. No connection is made here."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, TypeAdapter, ValidationError, model_validator

from graphrag_agent.errors import SettingsError
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.tools._sql_tables import named
from graphrag_agent.tools._sql_vocabulary import Dialect

EVERYTHING = "*"
Name = Annotated[str, Field(min_length=1, max_length=200)]
DatabaseName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Columns = Literal["*"] | tuple[Name, ...]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AccessRule(_Strict):
    """What some principals may see of a database. Several rules that fit one principal add up."""

    tenants: tuple[Name, ...] = Field(min_length=1, description="Tenants that the rule is for; *: every tenant")
    groups: tuple[Name, ...] = Field(default=(), description="One of these groups is needed; empty: the whole tenant")
    tables: Literal["*"] | dict[Name, Columns] = Field(
        description="* for all tables without the views; or table or view -> * or the list of its columns"
    )
    hidden_columns: dict[Name, tuple[Name, ...]] = Field(
        default_factory=dict, description="Table -> columns that this rule leaves out"
    )

    def is_for(self, scope: Scope) -> bool:
        """Whether the scope's principal is among those that the rule names."""
        in_tenant = EVERYTHING in self.tenants or scope.tenant in self.tenants
        return in_tenant and (not self.groups or not scope.groups.isdisjoint(self.groups))

    def visible(self, table: str, columns: Sequence[str], *, is_view: bool, dialect: Dialect) -> set[str]:
        """The columns of the table that the rule opens. Names are compared as the database compares them."""
        if isinstance(self.tables, Mapping):
            opened = _said_of(table, self.tables, dialect)
        else:
            opened = [] if is_view else [self.tables]
        hidden = _folded(_said_of(table, self.hidden_columns, dialect), dialect)
        named_ones = _folded(opened, dialect)
        return {
            name
            for name in columns
            if (EVERYTHING in opened or named(name, dialect) in named_ones) and named(name, dialect) not in hidden
        }

    def opens_whole(self, table: str, *, is_view: bool, dialect: Dialect) -> bool:
        """Whether the rule opens the table with all columns that it has or will have."""
        if isinstance(self.tables, Mapping):
            opened = EVERYTHING in _said_of(table, self.tables, dialect)
        else:
            opened = not is_view
        return opened and not any(_said_of(table, self.hidden_columns, dialect))


class DatabaseConfig(_Strict):
    """One database of the configuration file."""

    url: SecretStr | None = Field(default=None, description="sqlite:///FILE or postgresql://user:password@host/name")
    url_from: Name | None = Field(default=None, description="Environment variable that has the URL")
    description: str = Field(min_length=1, max_length=2000, description="What is in it, for the model")
    schemas: tuple[Name, ...] = Field(
        default=("public",), min_length=1, description="PostgreSQL: schemas to offer; names of the first need no schema"
    )
    access: tuple[AccessRule, ...] = Field(description="Who may see what; nobody sees anything that no rule opens")

    @model_validator(mode="after")
    def _one_url(self) -> DatabaseConfig:
        if (self.url is None) == (self.url_from is None):
            raise ValueError("give either url or url_from")
        return self


@dataclass(frozen=True)
class Access:
    """The rules that fit one principal."""

    positions: tuple[int, ...]
    """Where the rules stand in their database's list; they tell one access from another."""
    rules: tuple[AccessRule, ...] = field(compare=False)

    def visible(self, table: str, columns: Sequence[str], *, is_view: bool, dialect: Dialect) -> tuple[str, ...]:
        """The table's columns that the principal may see, in the table's order."""
        opened = {
            name for rule in self.rules for name in rule.visible(table, columns, is_view=is_view, dialect=dialect)
        }
        return tuple(name for name in columns if name in opened)

    def opens_whole(self, table: str, *, is_view: bool, dialect: Dialect) -> bool:
        """Whether a column that the table gets later may be seen too."""
        return any(rule.opens_whole(table, is_view=is_view, dialect=dialect) for rule in self.rules)


def access_of(config: DatabaseConfig, scope: Scope) -> Access | None:
    """The principal's access; None where no rule names the principal, for whom the database is not there."""
    positions = tuple(position for position, rule in enumerate(config.access) if rule.is_for(scope))
    return Access(positions, tuple(config.access[position] for position in positions)) if positions else None


def refuse_unknown_names(
    database: str, rules: Sequence[AccessRule], tables: Mapping[str, Sequence[str]], dialect: Dialect
) -> None:
    """Raises SettingsError for a table or column of a rule that is not there: a misspelt one would hide nothing.

    `tables` is table -> columns; none where they can't be read.
    """
    known = {named(table, dialect): {named(name, dialect) for name in names} for table, names in tables.items()}
    for position, rule in enumerate(rules):
        opened = rule.tables if isinstance(rule.tables, Mapping) else {}
        for field_name, said in (("tables", opened), ("hidden_columns", rule.hidden_columns)):
            place = f"database {database!r}, access.{position}.{field_name}"
            for table, columns in said.items():
                there = known.get(named(table, dialect))
                if there is None:
                    raise SettingsError(f"{place}: there is no table {table!r}; mend its name")
                for name in columns if there and columns != EVERYTHING else ():
                    if named(name, dialect) not in there:
                        raise SettingsError(f"{place}.{table}: there is no column {name!r}; mend its name")


def named_in(rules: Sequence[AccessRule], dialect: Dialect) -> set[str]:
    """The tables that the rules say something of, in the form that `named` gives."""
    said = [[*rule.hidden_columns, *(rule.tables if isinstance(rule.tables, Mapping) else ())] for rule in rules]
    return {named(table, dialect) for tables in said for table in tables}


def load_databases(path: str | Path) -> dict[str, DatabaseConfig]:
    """The databases of a JSON file: name -> url, description, access.

    Raises SettingsError that names the field; what stands in it is never repeated, as it may be a password.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
        given = json.loads(text)
        found = TypeAdapter(dict[DatabaseName, DatabaseConfig]).validate_python(_an_object(given))
    except OSError as error:
        raise SettingsError(f"databases: {str(file)!r} can't be read ({error.strerror}); give a JSON file") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise SettingsError(f"databases: {str(file)!r}, {place}: {first['msg']}") from None
    except ValueError:
        raise SettingsError(f"databases: {str(file)!r} is no valid JSON in UTF-8") from None
    return found


def url_text(name: str, config: DatabaseConfig) -> str:
    """The database's URL. Raises SettingsError where the variable that should have it is empty."""
    if config.url is not None:
        return config.url.get_secret_value()
    variable = config.url_from or ""
    if not (url := os.environ.get(variable)):
        raise SettingsError(f"database {name!r}: the environment variable {variable} with its URL is not set")
    return url


def _said_of(table: str, said: Mapping[str, Columns], dialect: Dialect) -> list[Columns]:
    """What a rule says of the table, under whatever spelling of its name."""
    return [columns for name, columns in said.items() if named(name, dialect) == named(table, dialect)]


def _folded(said: Sequence[Columns], dialect: Dialect) -> set[str]:
    return {named(name, dialect) for columns in said if columns != EVERYTHING for name in columns}


def _an_object(given: object) -> object:
    if not isinstance(given, dict):
        raise SettingsError("databases: the file has to hold an object: name -> url, description, access")
    return given
