"""The tool over a real PostgreSQL server: nothing written, nothing hidden shown, everything stopped in time."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from graphrag_agent.errors import ToolArgumentError, ToolError, ToolFailedError
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.tools._database_access import DatabaseConfig
from graphrag_agent.tools._database_reading import Reading, Stop
from graphrag_agent.tools._databases import Database, Databases
from graphrag_agent.tools.database_query import build_database_query
from graphrag_agent.tools.spec import ToolSpec
from tests.postgres_server import PostgresServer
from tests.shop_database import ACME, ask, refusal, rows

SCHEMA = """
CREATE SCHEMA hr;
CREATE TYPE mood AS ENUM ('ok', 'bad');
CREATE TABLE customers (id serial PRIMARY KEY, name text NOT NULL, secret text, mood mood DEFAULT 'ok');
CREATE TABLE orders (
    id serial PRIMARY KEY, customer_id int REFERENCES customers, total numeric(12, 2), placed timestamptz,
    span interval, raw bytea, tags text[], data jsonb, big bigint, day date
);
CREATE TABLE hr.people (id int PRIMARY KEY, "Full Name" text);
CREATE TABLE vault (id int, word text);
CREATE VIEW rich AS SELECT name, secret FROM customers;
CREATE VIEW own AS SELECT c.name, secret FROM customers c JOIN orders o ON o.customer_id = c.id WHERE o.total > 0;
CREATE MATERIALIZED VIEW sums AS SELECT 7 AS total;
CREATE FUNCTION wipe() RETURNS int LANGUAGE sql AS 'DELETE FROM orders; SELECT 1';
CREATE FUNCTION lower(orders) RETURNS text LANGUAGE sql AS 'SELECT word FROM vault';
COMMENT ON TABLE orders IS 'All orders since 2020';
COMMENT ON COLUMN orders.total IS 'in euro';
INSERT INTO customers (name, secret) VALUES ('Ann', 'tell-nobody'), ('Bob', 'tell-no-one');
INSERT INTO orders (customer_id, total, placed, span, raw, tags, data, big, day) VALUES
    (1, 10.50, '2026-01-02 03:04:05+00', '1 month 2 days', '\\x00ff', '{a,b}', '{"n": 12345678901234567890.5}',
     9223372036854775807, 'infinity'),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO hr.people VALUES (1, 'Ann Lee');
INSERT INTO vault VALUES (1, 'tell-no-body');
"""
ACCESS = [
    {"tenants": ["acme"], "tables": {"orders": "*", "customers": ["id", "name", "mood"], "hr.people": "*"}},
    {"tenants": ["globex"], "tables": {"rich": "*", "sums": "*"}},
]
GLOBEX = Scope("globex")
ENDLESS = "select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b"


@pytest.fixture(scope="module")
def url(postgres_server: PostgresServer) -> str:
    import psycopg

    made = postgres_server.database()
    with psycopg.connect(made, autocommit=True) as connection:
        connection.execute(SCHEMA.encode())
    return made


@pytest.fixture
def databases(url: str) -> Databases:
    given = {"url": url, "description": "orders", "schemas": ["public", "hr"], "access": ACCESS}
    return Databases({"shop": DatabaseConfig.model_validate(given)})


@pytest.fixture
def spec(databases: Databases) -> ToolSpec:
    return build_database_query(databases, seconds=1)


async def test_the_schema_has_comments_and_keys_of_what_may_be_seen(spec: ToolSpec) -> None:
    shown = await ask(spec, tables=["orders", "hr.people"])
    assert "table orders -- All orders since 2020\n" in shown
    assert "  total NUMERIC(12, 2) -- in euro\n" in shown
    assert "  customer_id INTEGER -> customers(id)\n" in shown
    assert "  placed TIMESTAMP WITH TIME ZONE\n" in shown and "  tags TEXT[]\n" in shown
    assert "hr.people, 1 of its rows:\n| id | Full Name |\n| --- | --- |\n| 1 | Ann Lee |" in shown
    whole = await ask(spec)
    assert "  mood public.mood\n" in whole
    assert "vault" not in whole and "secret" not in whole and "rich" not in whole


async def test_values_are_neither_rounded_nor_lost(spec: ToolSpec) -> None:
    assert await rows(spec, "select total, placed, span, raw, tags, data, big, day from orders order by id") == [
        '| 10.50 | 2026-01-02 03:04:05+00 | 1 mon 2 days | x\'00ff\' (2 bytes) | ["a", "b"] '
        '| {"n": 12345678901234567890.5} | 9223372036854775807 | infinity |',
        "| NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL |",
    ]


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("select count(*) filter (where total > 1) from orders", ["| 1 |"]),
        ("select name from customers where name like 'A%' and '5%' = '5%'", ["| Ann |"]),
        (
            "select extract(year from placed), to_char(placed, 'YYYY-MM') from orders where id = 1",
            ["| 2026 | 2026-01 |"],
        ),
        ("select date_trunc('month', timestamp '2026-03-04') + interval '1 day'", ["| 2026-03-02 00:00:00 |"]),
        ("select make_interval(days => 3, hours => 2)", ["| 3 days 02:00:00 |"]),
        ('select "Full Name" from hr.people', ["| Ann Lee |"]),
        ("select string_agg(name, ', ' order by name) from customers", ["| Ann, Bob |"]),
        ("select percentile_cont(0.5) within group (order by total) from orders", ["| 10.5 |"]),
        ("select data ->> 'n', tags[1] from orders where id = 1", ["| 12345678901234567890.5 | a |"]),
        ("select name, row_number() over (order by id desc) from customers order by 2", ["| Bob | 1 |", "| Ann | 2 |"]),
        (
            "with recursive n(i) as (select 1 union all select i + 1 from n where i < 4) select sum(i) from n",
            ["| 10 |"],
        ),
        ("select mood, count(*) from customers where mood = 'ok' group by mood", ["| ok | 2 |"]),
        ("select unnest(tags) from orders", ["| a |", "| b |"]),
        ("select t.n, t.tag from orders, unnest(tags) with ordinality as t(tag, n)", ["| 1 | a |", "| 2 | b |"]),
        ("select t, t.ordinality from orders, unnest(tags) with ordinality t", ["| a | 1 |", "| b | 2 |"]),
        ("select name from customers natural join orders order by 1", ["| Ann |", "| Bob |"]),
        ("select exists (select 1 from orders o where o.customer_id = c.id) from customers c limit 1", ["| true |"]),
    ],
)
async def test_usual_queries_give_their_rows(spec: ToolSpec, sql: str, found: list[str]) -> None:
    assert await rows(spec, sql) == found


@pytest.mark.parametrize(
    "sql",
    [
        "select * from customers",
        "select customers from customers",
        "select c from customers c",
        "select row_to_json(c), to_jsonb(c.*) from customers c",
        "select json_agg(c) from customers c",
        "select * from orders join customers on customers.id = orders.customer_id",
        "select (select c from customers c limit 1)::text",
        "select * from customers as c(a, b)",
        "with c as (table customers) select * from c",
        "select c::text from customers c",
    ],
)
async def test_hidden_columns_are_in_no_row_value(spec: ToolSpec, sql: str) -> None:
    shown = await ask(spec, sql)
    assert "Ann" in shown and "tell-no" not in shown


@pytest.mark.parametrize(
    "sql",
    [
        "select secret from customers",
        "select * from customers order by secret",
        "select * from vault",
        "select * from rich",
        "select * from public.vault",
        "select * from pg_catalog.pg_authid",
        "select * from information_schema.columns",
        "select relname from pg_class",
        "select 'vault'::regclass",
        "select to_regclass('vault')",
        "select current_setting('data_directory')",
        "select pg_read_file('/etc/passwd')",
        "select lo_import('/etc/passwd')",
        "select * from pg_ls_dir('/')",
        "select query_to_xml('select * from vault', true, true, '')",
        "select * from dblink('host=127.0.0.1', 'select 1') as t(a int)",
        "select wipe()",
        "select public.wipe()",
        "select pg_sleep(5)",
        "select pg_terminate_backend(1)",
        "select set_config('transaction_read_only', 'off', true)",
        "select nextval('orders_id_seq')",
        "select lo_export(1, '/tmp/x')",
        "select pg_advisory_lock(1)",
        "delete from orders",
        "with x as (delete from orders returning *) select * from x",
        "select * into copy from orders",
        "select 1; delete from orders",
        "select * from orders for update",
        "copy orders to '/tmp/x'",
        "select f.ts_stat from unnest(array['select to_tsvector(secret) from public.customers']) f, "
        "(select 1 as ts_stat) z",
        "select f.pg_read_file from unnest(array['/etc/passwd']) as f(a), (select 1 as pg_read_file) z",
        "do $$ begin perform wipe(); end $$",
        "listen x",
    ],
)
async def test_hostile_queries_are_refused_and_change_nothing(spec: ToolSpec, url: str, sql: str) -> None:
    before = await asyncio.to_thread(contents, url)
    said = await refusal(spec, sql)
    assert "tell-no" not in said and "secret, " not in said.partition("There is:")[2]
    assert "| 2 |" in await ask(spec, "select count(*) from orders")
    assert await asyncio.to_thread(contents, url) == before


def contents(url: str) -> list[Any]:
    """All that a query could have changed: rows, tables, numbers of sequences, large objects."""
    import psycopg

    tables = ("orders", "customers", "vault", "hr.people", "orders_id_seq", "customers_id_seq")
    told = [f"select array_agg(t::text order by t::text) from (table {table}) t" for table in tables]
    told += ["select count(*) from pg_class", "select count(*) from pg_largeobject_metadata"]
    with psycopg.connect(url) as connection:
        return [connection.execute(sql.encode()).fetchone() for sql in told]


async def test_a_function_of_the_databases_users_stands_for_no_allowed_one(spec: ToolSpec) -> None:
    """Only PostgreSQL's own functions are found: somebody has made a lower() that reads the vault."""
    said = await refusal(spec, "select lower(o) from orders o")
    assert "function lower(public.orders) does not exist" in said
    assert "tell-no" not in said


async def test_each_tenant_sees_its_own_part(spec: ToolSpec) -> None:
    assert await rows(spec, "select * from rich order by 1", GLOBEX) == [
        "| Ann | tell-nobody |",
        "| Bob | tell-no-one |",
    ]
    assert await refusal(spec, "select * from orders", GLOBEX) == "there is no table 'orders'; There is: rich, sums"
    assert await rows(spec, "select total from sums", GLOBEX) == ["| 7 |"]


async def test_a_column_that_a_table_gets_later_is_shown_to_nobody_who_was_given_a_list(
    postgres_server: PostgresServer,
) -> None:
    """The schema that is known is some minutes old, and the table had no other column then."""
    import psycopg

    made = await asyncio.to_thread(postgres_server.database)
    access = [
        {"tenants": ["acme"], "tables": {"staff": ["id", "name"]}},
        {"tenants": ["globex"], "tables": {"staff": "*"}},
    ]
    given = {"url": made, "description": "d", "access": access}
    spec = build_database_query(Databases({"shop": DatabaseConfig.model_validate(given)}))
    with psycopg.connect(made, autocommit=True) as connection:
        connection.execute("CREATE TABLE staff (id int, name text); INSERT INTO staff VALUES (1, 'Ann')")
        assert await rows(spec, "select * from staff") == ["| 1 | Ann |"]
        connection.execute("ALTER TABLE staff ADD pay text DEFAULT 'tell-nobody'")
    assert await rows(spec, "select * from staff") == ["| 1 | Ann |"]
    assert await rows(spec, "select row_to_json(s) from staff s") == ['| {"id":1,"name":"Ann"} |']
    assert await rows(spec, "select * from staff", GLOBEX) == ["| 1 | Ann | tell-nobody |"]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"tables": "*", "hidden_columns": {"Customers": ["secret"]}}, "there is no table 'Customers'"),
        ({"tables": "*", "hidden_columns": {"customers": ["Secret"]}}, "there is no column 'Secret'"),
        ({"tables": {"people": "*"}}, "there is no table 'people'"),
    ],
)
async def test_a_rule_that_means_something_else_in_postgres_opens_nothing(
    url: str, rule: dict[str, Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"url": url, "description": "d", "schemas": ["public", "hr"], "access": [{"tenants": ["acme"], **rule}]}
    with pytest.raises(ToolFailedError, match="not set up right"):
        await ask(build_database_query(Databases({"shop": DatabaseConfig.model_validate(given)})))
    assert said in caplog.text


def opened(databases: Databases) -> Database:
    return databases.open_to(ACME)["shop"][0]


def test_the_transaction_itself_refuses_to_write(databases: Databases) -> None:
    """The second lock, tried without the first."""
    for sql in (
        "insert into public.customers (name) values ('x') returning id",
        "select public.wipe()",
        "create table public.copy as select 1",
        "select nextval('public.orders_id_seq')",
    ):
        with pytest.raises(ToolError):
            opened(databases).reader.read(Reading(sql, {}, 1, 10, 1_000), Stop())
    found = opened(databases).reader.read(Reading("select count(*) from public.orders", {}, 1, 10, 1_000), Stop())
    assert found.rows == [["2"]]


@pytest.mark.parametrize(
    "sql", [ENDLESS, "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"]
)
async def test_a_query_without_end_is_stopped_on_the_server(spec: ToolSpec, url: str, sql: str) -> None:
    began = time.perf_counter()
    assert "the query was stopped after 1 s" in await refusal(spec, sql)
    assert time.perf_counter() - began < 5
    assert await asyncio.to_thread(active, url) == 0


async def test_a_call_that_is_given_up_is_stopped_on_the_server(databases: Databases, url: str) -> None:
    patient = build_database_query(databases, seconds=30)
    call = asyncio.create_task(ask(patient, ENDLESS))
    for _ in range(100):
        if await asyncio.to_thread(active, url):
            break
        await asyncio.sleep(0.05)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    for _ in range(100):
        if not await asyncio.to_thread(active, url):
            break
        await asyncio.sleep(0.05)
    assert await asyncio.to_thread(active, url) == 0
    assert await rows(patient, "select count(*) from orders") == ["| 2 |"], "its connection serves the next query"


async def test_many_slow_rows_are_one_slow_query(spec: ToolSpec) -> None:
    """The server's limit holds for each fetch of a few rows."""
    slow = "(select count(*) from generate_series(1, 500000) a where a > g)"
    began = time.perf_counter()
    assert "the query was stopped after 1 s" in await refusal(spec, f"select {slow} from generate_series(1, 500) g")
    assert time.perf_counter() - began < 4


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_server_that_hears_nothing_keeps_no_thread(
    databases: Databases, postgres_server: PostgresServer, url: str
) -> None:
    stop, reader = Stop(), opened(databases).reader

    def read() -> None:
        with suppress(ToolError):
            reader.read(Reading(ENDLESS, {}, 60, 10, 1_000), stop)

    reading = threading.Thread(target=read)
    reading.start()
    while not active(url):
        time.sleep(0.05)
    first = int((postgres_server.data / "postmaster.pid").read_text().split()[0])
    send([first], signal.SIGSTOP)
    backends = [*map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split())]
    send(backends, signal.SIGSTOP)
    try:
        stop.now()
        reading.join(5)
        assert not reading.is_alive()
    finally:
        send([first, *backends], signal.SIGCONT)
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        gc.collect()  # the cursor of a connection that is lost can't be closed


def send(processes: list[int], number: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError):  # a backend may have ended meanwhile
            os.kill(process, number)


def active(url: str) -> int:
    """Queries that run, or stand between two statements of their transaction."""
    import psycopg

    with psycopg.connect(url) as connection:
        found = connection.execute(
            "select count(*) from pg_stat_activity where state <> 'idle' and datname = current_database() "
            "and query ~ 'GENERATE_SERIES|FETCH FORWARD' and pid <> pg_backend_pid() "
            "and backend_type = 'client backend'"
        ).fetchone()
    return int(found[0]) if found else 0


async def test_the_servers_errors_are_told_and_those_of_the_connection_are_not(spec: ToolSpec) -> None:
    assert 'column reference "id" is ambiguous' in await refusal(spec, "select id from customers, orders")
    assert "division by zero" in await refusal(spec, "select 1 / 0")
    assert "must appear in the GROUP BY clause" in await refusal(spec, "select name, count(*) from customers")
    nowhere = {"url": "postgresql://app:hunter2@127.0.0.1:1/x", "description": "d", "access": ACCESS}
    broken = build_database_query(Databases({"shop": DatabaseConfig.model_validate(nowhere)}))
    with pytest.raises(ToolFailedError, match="the database 'shop' can't be reached now") as caught:
        await ask(broken)
    assert caught.value.retryable
    assert "hunter2" not in str(caught.value) and "127.0.0.1" not in str(caught.value)


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("secret::int > 1", "invalid input syntax for type integer: …;"),
        ("secret::date > now()", "invalid input syntax for type date: …;"),
        ("to_date(secret, 'YYYY') > now()", "invalid value …;"),
        ("secret::bit(3) is not null", "… is not a valid binary digit;"),
        ("make_date(2000 + length(secret), 13, 1) > now()", "date field value out of range: …;"),
        ("secret > '' and date '2026-13-01' > now()", 'date/time field value out of range: "2026-13-01"'),
    ],
)
async def test_an_error_tells_no_value_of_a_row(databases: Databases, condition: str, said: str) -> None:
    """A condition may run before the filter of the view, on the rows that it leaves out."""
    query = f"select name from public.own where {condition}"
    with pytest.raises(ToolArgumentError) as caught:
        opened(databases).reader.read(Reading(query, {}, 1, 10, 1_000), Stop())
    assert said in str(caught.value) and "tell" not in str(caught.value)


async def test_more_rows_than_are_shown_are_not_fetched(spec: ToolSpec) -> None:
    shown = await ask(spec, "select g from generate_series(1, 100000) g limit 90000")
    assert "the first 50 rows, there are more" in shown
    assert "the first 50 rows" in await ask(
        spec, "select g from generate_series(1, 1000000) g fetch first 900000 rows only"
    )


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
async def test_a_database_may_have_any_encoding(postgres_server: PostgresServer, encoding: str) -> None:
    import psycopg

    name = f"in_{encoding.lower()}"
    with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
        made = f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        connection.execute(made.encode())
    with psycopg.connect(postgres_server.url(name), client_encoding="utf8") as connection:
        connection.execute("CREATE TABLE t (id int, name text); INSERT INTO t VALUES (1, 'Müller')".encode())
        if encoding == "SQL_ASCII":
            connection.execute("INSERT INTO t VALUES (2, E'\\xff')")
    rule = {"tenants": ["acme"], "tables": "*"}
    given = {"url": postgres_server.url(name), "description": "d", "access": [rule]}
    spec = build_database_query(Databases({"shop": DatabaseConfig.model_validate(given)}))
    assert await rows(spec, "select name from t where name = 'Müller'") == ["| Müller |"]
    said = "invalid byte sequence for encoding …: …;" if encoding == "SQL_ASCII" else "character with byte sequence …"
    assert said in await refusal(spec, "select name, 'Жук' from t")


async def test_many_at_once_share_a_few_connections(spec: ToolSpec) -> None:
    found = await asyncio.gather(*(rows(spec, f"select {number} from orders limit 1") for number in range(20)))
    assert found == [[f"| {number} |"] for number in range(20)]


async def test_an_unknown_table_is_an_argument_to_mend(spec: ToolSpec) -> None:
    with pytest.raises(ToolArgumentError, match="did you mean customers"):
        await ask(spec, "select * from customer")
