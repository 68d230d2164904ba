"""Who may see what of a configured database, and a configuration that can't be misread."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_agent.errors import SettingsError
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.tools._database_access import DatabaseConfig, access_of, load_databases, url_text
from graphrag_agent.tools._database_reading import Stop
from graphrag_agent.tools._databases import Databases
from graphrag_agent.tools.database_query import open_databases

COLUMNS = ("id", "name", "secret")


def config(*rules: dict[str, Any], **more: Any) -> DatabaseConfig:
    return DatabaseConfig.model_validate({"url": "sqlite:///x.db", "description": "d", "access": rules, **more})


def seen(scope: Scope, *rules: dict[str, Any], table: str = "customers", is_view: bool = False) -> tuple[str, ...]:
    access = access_of(config(*rules), scope)
    return () if access is None else access.visible(table, COLUMNS, is_view=is_view, dialect="sqlite")


def test_a_rule_opens_its_tables_to_its_tenant_and_to_no_other() -> None:
    rule = {"tenants": ["acme"], "tables": {"customers": ["id", "name"]}}
    assert seen(Scope("acme"), rule) == ("id", "name")
    assert seen(Scope("acme"), rule, table="orders") == ()
    assert access_of(config(rule), Scope("globex")) is None


def test_groups_narrow_a_rule_and_rules_add_up() -> None:
    rules = (
        {"tenants": ["acme"], "tables": {"customers": ["id"]}},
        {"tenants": ["acme"], "groups": ["sales"], "tables": {"customers": ["name"]}},
        {"tenants": ["*"], "groups": ["audit"], "tables": "*"},
    )
    assert seen(Scope("acme"), *rules) == ("id",)
    assert seen(Scope("acme", frozenset({"sales"})), *rules) == ("id", "name")
    assert seen(Scope("globex", frozenset({"sales"})), *rules) == ()
    assert seen(Scope("globex", frozenset({"audit"})), *rules) == COLUMNS


def test_hidden_columns_stay_hidden_and_all_tables_are_not_the_views() -> None:
    rule = {"tenants": ["acme"], "tables": "*", "hidden_columns": {"customers": ["secret"]}}
    assert seen(Scope("acme"), rule) == ("id", "name")
    assert seen(Scope("acme"), rule, table="orders") == COLUMNS
    assert seen(Scope("acme"), rule, table="rich", is_view=True) == ()
    named = {"tenants": ["acme"], "tables": {"rich": "*"}}
    assert seen(Scope("acme"), named, table="rich", is_view=True) == COLUMNS


def test_a_file_of_databases_is_read(tmp_path: Path) -> None:
    file = tmp_path / "databases.json"
    rule = {"tenants": ["acme"], "tables": "*"}
    file.write_text(json.dumps({"shop": {"url": "sqlite:///shop.db", "description": "orders", "access": [rule]}}))
    found = load_databases(file)
    assert found["shop"].description == "orders"
    assert list(open_databases(file).open_to(Scope("acme"))) == ["shop"]
    assert Databases(found).open_to(Scope("globex")) == {}


PASSWORD = "hunter2-hunter2"
URL = f"postgresql://app:{PASSWORD}@db/shop"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no valid JSON"),
        ("[]", "has to hold an object"),
        (json.dumps({"shop": {"url": URL, "access": []}}), "shop.description: Field required"),
        (json.dumps({"shop": {"url": [URL], "description": "d", "access": []}}), "shop.url"),
        (
            json.dumps({"shop": {"url": URL, "url_from": "X", "description": "d", "access": []}}),
            "either url or url_from",
        ),
        (json.dumps({"shop": {"url": URL, "description": "d", "acess": []}}), "shop.access: Field required"),
        (json.dumps({"a b": {"url": URL, "description": "d", "access": []}}), "should match pattern"),
        (
            json.dumps({"shop": {"url": URL, "description": "d", "access": [{"tenants": [], "tables": "*"}]}}),
            "shop.access.0.tenants",
        ),
        (
            json.dumps({"shop": {"url": URL, "description": "d", "access": [{"tenants": ["a"], "tables": "all"}]}}),
            "shop.access.0.tables",
        ),
    ],
)
def test_a_bad_file_is_refused_by_the_field_and_its_password_never_told(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "databases.json"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load_databases(file)
    assert said in str(caught.value)
    assert PASSWORD not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_missing_file_is_named() -> None:
    with pytest.raises(SettingsError, match=r"'/nowhere/databases\.json' can't be read"):
        load_databases("/nowhere/databases.json")


def test_a_password_is_in_no_repr_and_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert PASSWORD not in repr(config(url=URL)) + str(config(url=URL).model_dump())
    elsewhere = config(url=None, url_from="SHOP_URL")
    with pytest.raises(SettingsError, match="SHOP_URL with its URL is not set"):
        url_text("shop", elsewhere)
    monkeypatch.setenv("SHOP_URL", URL)
    assert url_text("shop", elsewhere) == URL


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"mysql://app:{PASSWORD}@db/shop", "mysql is not supported"),
        (f"{PASSWORD}", "its url can't be read"),
        ("sqlite://", "write its url as sqlite:///FILE"),
        ("sqlite:///:memory:", "write its url as sqlite:///FILE"),
        ("sqlite:///x.db?mode=rw", "write its url as sqlite:///FILE"),
        ("sqlite:///nowhere.db", "the file of its url is not there"),
    ],
)
def test_a_url_that_can_not_be_used_is_refused(tmp_path: Path, url: str, said: str) -> None:
    rule = {"tenants": ["acme"], "tables": "*"}
    databases = Databases({"shop": config(rule, url=url)}, folder=tmp_path)
    database, access = databases.open_to(Scope("acme"))["shop"]
    with pytest.raises(SettingsError, match=said) as caught:
        database.tables(access, Stop())
    assert PASSWORD not in str(caught.value)
    assert str(tmp_path) not in str(caught.value), "the model may read it"
