"""What a model's SQL may be, and what of it runs."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_agent.errors import ToolArgumentError
from graphrag_agent.tools._sql_guard import CheckedQuery, checked_query
from graphrag_agent.tools._sql_tables import VisibleTable

ATTACKS = Path(__file__).parents[4] / "shared" / "data" / "security" / "sql"
needs_attacks = pytest.mark.skipif(not ATTACKS.is_dir(), reason="the attacks are not beside this checkout")

ORDERS = VisibleTable("orders", ("id", "customer_id", "total", "placed_on"), "public")
CUSTOMERS = VisibleTable("customers", ("id", "name"), "public", hides_columns=True)
PEOPLE = VisibleTable("people", ("id", "Name"), "hr", needs_schema=True)
TABLES = (ORDERS, CUSTOMERS, PEOPLE)
VISIBLE_CUSTOMERS = '(SELECT "id", "name" FROM "public"."customers")'


def check(sql: str, dialect: Any = "postgres", **more: Any) -> CheckedQuery:
    return checked_query(sql, dialect=dialect, tables=more.pop("tables", TABLES), **more)


def refusal(sql: str, dialect: Any = "postgres", **more: Any) -> str:
    with pytest.raises(ToolArgumentError) as caught:
        check(sql, dialect, **more)
    return str(caught.value)


def attacks(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ATTACKS / name).read_text().splitlines()]


def test_a_query_runs_as_it_was_read_with_its_tables_named_in_full() -> None:
    query = check("select o.id from orders o -- the ids\nwhere total > 5 /* euro */;", max_rows=51)
    assert query.sql == 'SELECT "o"."id" FROM "public"."orders" AS "o" WHERE "total" > 5 LIMIT 51'
    assert query.shown == "SELECT o.id FROM orders AS o WHERE total > 5"
    assert query.tables == (ORDERS,)
    assert check("select id from orders; -- the ids\n").shown == check("select id from orders;").shown


@pytest.mark.parametrize(
    ("sql", "limit"),
    [
        ("select id from orders limit 5", "LIMIT 5"),
        ("select id from orders limit 5000", "LIMIT 51"),
        ("select id from orders union select 1", "LIMIT 51"),
        ("(select id from orders limit 9000)", "LIMIT 51"),
        ("values (1), (2)", "LIMIT 51"),
        ("select id from orders fetch first 2 rows only", "FETCH FIRST 2 ROWS ONLY"),
    ],
)
def test_no_query_asks_for_more_rows_than_are_shown(sql: str, limit: str) -> None:
    assert check(sql, max_rows=51).sql.endswith(limit)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("select 1; drop table orders", "2 statements"),
        ("select 1;;select 2", "3 statements"),
        ("with gone as (delete from orders returning *) select * from gone", "DELETE is refused"),
        ("with x as (insert into orders values (1) returning id) select * from x", "INSERT is refused"),
        ("with x as (update orders set total = 0 returning id) select * from x", "UPDATE is refused"),
        ("select * into copy from orders", "INTO is refused"),
        ("select * from orders for update", "FOR UPDATE or SHARE is refused"),
        ("select * from orders where id = $1", "a variable is refused"),
        ("select * from orders where id = ?", "a placeholder is refused"),
        ("select * from orders tablesample system (1)", "TABLESAMPLE is refused"),
        ("explain analyze delete from orders", "EXPLAIN is refused"),
        ("do $$ begin delete from orders; end $$", "DO is refused"),
        ("copy orders to program 'sh'", "COPY is refused"),
        ("call wipe()", "CALL is refused"),
        ("set role postgres", "SET is refused"),
        ("", "the query is empty"),
        ("-- nothing", "the query is empty"),
        ("select 'open", "not closed"),
        ("select (1", "no valid postgres SQL"),
        ("select id\0 from orders", "zero character"),
        ("select '1'::regclass", "OBJECTIDENTIFIER is refused"),
        ("select 'ok'::mood", "the type in a CAST is refused"),
        ("select a operator(pg_catalog.+) b", "OPERATOR is refused"),
        ("select current_user", "the function current_user is refused"),
        ("select user", "there is no column 'user'"),
        ("select ctid from orders", "there is no column 'ctid'"),
    ],
)
def test_what_does_more_than_read_is_refused_by_its_name(sql: str, said: str) -> None:
    assert said in refusal(sql)


FUNCTIONS = {
    "postgres": "pg_sleep(9) pg_read_file('/etc/passwd') lo_export(1,'/tmp/x') lo_import('/etc/passwd') pg_ls_dir('.') "
    "query_to_xml('select',true,true,'') dblink('a','b') set_config('a','b',false) current_setting('x') version() "
    "pg_terminate_backend(1) nextval('s') pg_advisory_lock(1) repeat('x',1000000000) lpad('x',1000000000) "
    "pg_catalog.pg_sleep(9) has_table_privilege('x','select') database_to_xml(true,true,'') pg_notify('a','b')",
    "sqlite": "load_extension('x') readfile('/etc/passwd') writefile('x','y') edit('x') fts3_tokenizer('x') "
    "zeroblob(1000000000) randomblob(9) sqlite_version() pragma_table_info('x') sqlite_compileoption_get(1)",
    "mysql": "load_file('/etc/passwd') sleep(9) benchmark(9,1) sys_exec('x') user() database() version()",
    "duckdb": "read_csv('/etc/passwd') read_text('/etc/passwd') glob('*') getenv('HOME') parquet_scan('x') "
    "read_blob('x') query('select 1') query_table('x') sniff_csv('x') duckdb_settings() which_secret('a','b')",
}


@pytest.mark.parametrize(
    ("dialect", "function"),
    [(dialect, function) for dialect, listed in FUNCTIONS.items() for function in listed.split(") ")],
)
def test_functions_beyond_the_list_are_refused_in_a_column_and_in_from(dialect: str, function: str) -> None:
    call = function if function.endswith(")") else f"{function})"
    for sql in (f"select {call}", f"select * from {call}", f"select 1 where 1 in (select {call})"):
        assert "refused" in refusal(sql, dialect) or "without a schema" in refusal(sql, dialect)


@pytest.mark.parametrize(
    "source",
    [
        "unnest(array['x']) f",
        "unnest(array['x']) as f(a)",
        "unnest(array['x']) with ordinality as f(a, n)",
        "rows from (unnest(array['x'])) as f(a)",
        "lower('x') f",
        "orders o, lateral unnest(array['x']) f",
        "orders o cross join lateral lower('x') as f(a)",
        "jsonb_array_elements_text('[1]') f",
    ],
)
@pytest.mark.parametrize("other", ["(select 1 as ts_stat) z", "(select 1 as ts_stat) f", "unnest(array[1]) f(ts_stat)"])
def test_a_name_behind_a_functions_rows_calls_no_other_function(source: str, other: str) -> None:
    """PostgreSQL reads f.ts_stat as ts_stat(f) where f has no such column, and ts_stat runs any query given as text."""
    sql = f"select f.ts_stat from {source} where exists (select 1 from {other})"
    assert "there is no column 'f.ts_stat'" in refusal(sql)
    if "f(" in source or "json" in source:  # the alias is no column's name
        assert "there is no column 'ts_stat.ts_stat'" in refusal(re.sub(r"\bf\b", "ts_stat", sql))


def test_a_long_name_is_the_one_that_postgres_cuts_it_to() -> None:
    """Else the alias of a function would pass for another's, that may have any column."""
    cut = "f" * 63
    other = f"where exists (select 1 from (select 1 as ts_stat) {cut})"
    sql = f"select {cut}.ts_stat from unnest(array['x']) {cut}f {other}"
    assert f"there is no column '{cut}.ts_stat'" in refusal(sql)
    assert check(f'select total as "{"я" * 40}" from orders').sql.startswith(f'SELECT "total" AS "{"я" * 31}" FROM')


def test_letters_that_postgres_does_not_fold_stay_as_they_are() -> None:
    tables = [VisibleTable("Заказы", ("ИД", "total"), "public"), VisibleTable("straße", ("Ü",), "public")]
    query = check("SELECT ИД, TOTAL, Ü AS Ä FROM Заказы z, Straße", tables=tables)
    assert query.sql.startswith('SELECT "ИД", "total", "Ü" AS "Ä" FROM "public"."Заказы" AS "z", "public"."straße"')


def test_a_function_in_from_whose_rows_have_a_name_of_their_own_needs_an_alias() -> None:
    for call in ("lower('x')", "cast('x' as text)", "rows from (lower('x'))"):
        said = refusal(f"select lower.ts_stat from {call} where exists (select 1 from (select 1 as ts_stat) lower)")
        assert "give the function in FROM a name" in said
    said = refusal("select unnest.ts_stat from unnest(array['x']), (select 1 as ts_stat) z")
    assert "there is no column 'unnest.ts_stat'" in said


def test_the_columns_of_a_functions_rows_are_known() -> None:
    for sql in (
        "select g.g, t.a, t.n from generate_series(1, 2) g, unnest(array['x']) with ordinality t(a, n)",
        "select t.t, t.ordinality, n from unnest(array['x']) with ordinality t, generate_series(1, 2) as s(n)",
        "select generate_series.generate_series, x.value from generate_series(1, 2), jsonb_array_elements('[1]') x",
    ):
        assert check(sql).tables == ()


def test_a_quoted_function_is_no_other() -> None:
    assert 'the function "pg_sleep" is refused' in refusal('select "pg_sleep"(9)')


def test_half_of_a_character_is_written_as_one_that_can_be_sent() -> None:
    assert check("select 'a\ud800', '\ud83d\ude00' from orders", "sqlite").sql.startswith(
        "SELECT 'a\ufffd', '\U0001f600' "
    )


def test_what_mysql_would_run_in_a_comment_is_refused() -> None:
    said = refusal("select 1 /*!50000 union select load_file('/etc/passwd') */", "mysql")
    assert "comment that MySQL runs" in said
    assert check("select id from orders /* read */", "mysql").sql == "SELECT `id` FROM `public`.`orders` AS `orders`"


@pytest.mark.parametrize(
    "sql",
    [
        "select date_part('x'' || (select ''told'') || ''', placed_on) from orders",
        'select extract("x"" || (select 1) || """ from placed_on) from orders',
        "select date_part('day from now()) from secret --', placed_on) from orders",
    ],
)
def test_a_unit_that_would_be_written_without_quotes_must_be_a_word(sql: str) -> None:
    """sqlglot takes the text out of its quotes here: what was data would run as SQL."""
    assert "no unit or keyword" in refusal(sql)


@settings(max_examples=40)
@given(st.text(max_size=30), st.sampled_from(["postgres", "sqlite", "mysql", "duckdb"]))
def test_a_text_stays_a_text_wherever_it_stands(text: str, dialect: Any) -> None:
    literal = "'" + text.replace("'", "''") + "'"
    if dialect == "mysql" and "\\" in text:
        return  # a backslash is more than itself there
    places = (
        "{0}",
        "date_trunc({0}, placed_on)",
        "date_part({0}, placed_on)",
        "placed_on - interval {0}",
        "coalesce({0})",
    )
    for place in places:
        try:
            query = check(f"select {place.format(literal)} from orders", dialect)
        except ToolArgumentError:
            continue
        again = check(query.sql, dialect)
        assert again.tables == (ORDERS,)
        if place == "{0}" and dialect != "mysql":  # which writes a line's end as \\n
            assert query.sql.startswith(f"SELECT {literal} ")


@pytest.mark.parametrize("dialect", ["postgres", "sqlite", "mysql", "duckdb"])
@pytest.mark.parametrize("times", [25, 200, 1_300, 3_000, 10_000])
@pytest.mark.parametrize(
    ("beginning", "repeated", "inside", "closing"),
    [
        ("select ", "(", "1", ")"),
        ("select ", "array[", "1", "]"),
        ("select ", "not ", "1", ""),
        ("select ", "lower(", "1", ")"),
        ("select ", "case when 1 then ", "1", " end"),
        ("select ", "(select ", "1", ")"),
        ("select * from ", "(", "orders", ")"),
        ("select ", "1 + ", "1", ""),
        ("select ", "total -> (", "1", ")"),
        ("", "select 1 union ", "select 1", ""),
    ],
)
def test_deep_and_long_queries_are_answered_at_once(
    dialect: str, times: int, beginning: str, repeated: str, inside: str, closing: str
) -> None:
    sql = f"{beginning}{repeated * times}{inside}{closing * times} from orders"
    began = time.process_time()
    try:
        check(sql, dialect)
    except ToolArgumentError as error:
        assert any(word in str(error) for word in ("allowed", "nested", "nest fewer", "no valid", "there is no"))
    assert time.process_time() - began < 3


@pytest.mark.parametrize("dialect", ["postgres", "sqlite", "duckdb", "mysql"])
def test_a_short_query_over_a_wide_table_is_no_long_one(dialect: str) -> None:
    columns = tuple(f"column_{number}" for number in range(300))
    wide = VisibleTable("wide", columns, "public", hides_columns=True)
    sql = "select count(*) from wide a join wide b on a.column_1 = b.column_2"
    for number in range(6):
        sql += f" join wide x{number} on x{number}.column_3 = a.column_4"
    assert check(sql, dialect, tables=[wide]).sql.count("column_299") == 8
    began = time.process_time()
    said = refusal("select 1 from " + ", ".join(["wide"] * 1_500), dialect, tables=[wide])
    assert "would have 450,000 columns, 10,000 are allowed; name each table once" in said
    assert time.process_time() - began < 3


def test_a_statement_of_a_megabyte_is_refused_unread() -> None:
    said = refusal("select id from orders where id in (" + "1," * 500_000 + "1)")
    assert "20,000 are allowed" in said


@pytest.mark.parametrize(
    ("sql", "runs"),
    [
        ("select * from customers", f'SELECT * FROM {VISIBLE_CUSTOMERS} AS "customers"'),
        ("select c from customers c", f'SELECT "c" FROM {VISIBLE_CUSTOMERS} AS "c"'),
        ("select row_to_json(c) from customers c", f'SELECT ROW_TO_JSON("c") FROM {VISIBLE_CUSTOMERS} AS "c"'),
        (
            "select * from orders natural join customers",
            f'SELECT * FROM "public"."orders" AS "orders" NATURAL JOIN {VISIBLE_CUSTOMERS} AS "customers"',
        ),
        (
            "select customers.* from orders join public.customers using (id)",
            'SELECT "customers".* FROM "public"."orders" AS "orders" '
            f'JOIN {VISIBLE_CUSTOMERS} AS "customers" USING ("id")',
        ),
        (
            "select * from (customers c join orders o on true)",
            f'SELECT * FROM ({VISIBLE_CUSTOMERS} AS "c" JOIN "public"."orders" AS "o" ON TRUE)',
        ),
        ("select * from customers as c(a, b)", f'SELECT * FROM {VISIBLE_CUSTOMERS} AS "c"("a", "b")'),
        ("select customers.name from customers", f'SELECT "customers"."name" FROM {VISIBLE_CUSTOMERS} AS "customers"'),
        ("select public.orders.id from public.orders", 'SELECT "orders"."id" FROM "public"."orders" AS "orders"'),
        ("table customers", ""),
        ('select "Name" from people', 'SELECT "Name" FROM "hr"."people" AS "people"'),
        ("select count(*) from customers", f'SELECT COUNT(*) FROM {VISIBLE_CUSTOMERS} AS "customers"'),
    ],
)
def test_a_table_with_hidden_columns_is_its_visible_ones(sql: str, runs: str) -> None:
    if runs:
        assert check(sql).sql == runs
    else:
        refusal(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "select secret from customers",
        "select name from customers order by secret",
        "select c.secret from customers c",
        "select name from customers where secret like 'a%'",
        "select o.id from orders o join customers c on c.secret = o.id",
        "select * from orders join customers using (secret)",
        "select (select max(secret) from customers)",
        "select max(secret) over () from customers",
        "with c as (select secret from customers) select * from c",
        "select x.secret from (select * from customers) x",
        "select 1 from customers group by secret having count(secret) > 1",
    ],
)
def test_a_hidden_column_is_one_that_is_not_there(sql: str) -> None:
    made_up = refusal(sql.replace("secret", "xyzzyq")) if "using" not in sql else ""
    if "using" in sql:
        assert VISIBLE_CUSTOMERS in check(sql).sql  # the database finds no such column in it
    else:
        assert refusal(sql) == made_up.replace("xyzzyq", "secret")


@pytest.mark.parametrize(
    "sql",
    [
        "select * from vault",
        "select * from orders, vault",
        "select * from orders where id in (select id from vault)",
        "select * from public.vault",
        "with vault as (select * from vault) select * from vault",
        "select * from vault, (with vault as (select 1) select * from vault) x",
        "select * from (with vault as (select 1) select * from vault) x, vault",
        "with a as (select * from b), b as (select 1) select * from a",
        "select * from information_schema.tables",
        "select * from pg_catalog.pg_class",
        "select * from pg_class",
        "select * from sqlite_master",
        "select * from other.orders",
        "select * from db.public.orders",
        "select * from lateral (select * from vault) x",
        "select 1 union select id from vault",
        "select vault.id from orders",
    ],
)
@pytest.mark.parametrize("dialect", ["postgres", "sqlite", "duckdb", "mysql"])
def test_a_hidden_table_is_one_that_is_not_there(sql: str, dialect: str) -> None:
    said = refusal(sql, dialect)
    assert "there is no" in said or "schema.name" in said
    assert said.replace("vault", "xyzzy") == refusal(sql.replace("vault", "xyzzy"), dialect)


def test_in_takes_no_bare_table() -> None:
    """SQLite reads `x IN vault` as the table's rows."""
    assert "IN takes a list or a query" in refusal("select 1 where 1 in vault", "sqlite")
    assert "IN takes a list or a query" in refusal("select 1 where 1 in main.vault", "sqlite")


def test_a_cte_may_be_called_like_any_table_and_stands_for_itself() -> None:
    query = check("with vault as (select 7 as id), orders as (select id from vault) select orders.id from orders")
    assert query.tables == ()
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript("create table vault(id); insert into vault values (1); create table orders(id)")
        assert connection.execute(query.sql).fetchall() == [(7,)]


def test_a_recursive_cte_refers_to_itself() -> None:
    query = check(
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 4) select sum(i) from n", "sqlite"
    )
    with closing(sqlite3.connect(":memory:")) as connection:
        assert connection.execute(query.sql).fetchall() == [(10,)]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("select nmae from customers", "there is no column 'nmae'; did you mean name? There is: id, name"),
        ("select c.nmae from customers c", "there is no column 'c.nmae'; did you mean name? There is: id, name"),
        (
            "select * from custmers",
            "there is no table 'custmers'; did you mean customers? There is: orders, customers, hr.p",
        ),
        ("select datetrunc('day', placed_on) from orders", "the function datetrunc is refused; use date_trunc"),
        ("select id from orders where id in (select", "no valid postgres SQL"),
        ("select totl from orders, customers", "did you mean orders.total?"),
        ('select name from customers where name = "Ann"', "Write a text in single quotes"),
        ("select count(*) * 100_000 from orders", "100_000 is no number here; write it in digits alone"),
        ("drop table orders", "DROP is refused. Write one query that begins with SELECT or WITH"),
    ],
)
def test_an_error_names_the_mend(sql: str, said: str) -> None:
    assert said in refusal(sql)


@pytest.mark.parametrize(
    ("sql", "dialect", "said"),
    [
        ("select string_to_tme(name) from customers", "postgres", "string_to_tme is refused; use string_to_array"),
        ("select str_pos(name, 'x') from customers", "postgres", "str_pos is refused; use strpos"),
        ("select json_aggr(name) from customers", "postgres", "json_aggr is refused; use json_agg, jsonb_agg"),
        ("select json_arrayag(name) from customers", "mysql", "json_arrayag is refused; use json_arrayagg"),
        ("select jsonaggr(name) from customers", "mysql", "jsonaggr is refused; use json_arrayagg"),
        (
            "select json_array_agg(name) from customers",
            "sqlite",
            "json_array_agg is refused; use json_array_length",
        ),
        (
            "select json_array_agg (name) from customers",
            "duckdb",
            "json_array_agg is refused; use array_agg, json_",
        ),
        ("select Hex(name) from customers", "postgres", "the function hex is refused"),
        ("select * from generate_series(1, 3)", "sqlite", "the function generate_series is refused"),
    ],
)
def test_a_refused_function_is_told_as_it_was_written_and_others_as_they_can_be(
    sql: str, dialect: str, said: str
) -> None:
    assert said in refusal(sql, dialect)


def test_functions_that_sqlglot_calls_otherwise_can_be_called() -> None:
    assert check("select make_timestamp(2026, 1, 2, 3, 4, 5)").sql == "SELECT MAKE_TIMESTAMP(2026, 1, 2, 3, 4, 5)"
    assert check("select make_date(2026, 1, 2)", "duckdb").sql == "SELECT MAKE_DATE(2026, 1, 2)"


def test_an_argument_may_be_named_in_postgres() -> None:
    assert check("select make_interval(days => 3)").sql == "SELECT MAKE_INTERVAL(days => 3)"
    assert "there is no column 'secret'" in refusal("select make_interval(days => secret) from customers")


def test_in_sqlite_a_misspelt_name_in_double_quotes_is_not_a_text() -> None:
    table = VisibleTable("t", ("a b", "c"), "main")
    assert "there is no column 'nope'" in refusal('select "nope" from t', "sqlite", tables=[table])
    query = check('select "a b", x."c" from t as x order by 1', "sqlite", tables=[table])
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript('create table t("a b", c); insert into t values (1, 2)')
        assert connection.execute(query.sql).fetchall() == [(1, 2)]
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            connection.execute(check('select "q" from t where 1 in (select 1 as q)', "sqlite", tables=[table]).sql)


def test_the_caller_may_allow_more_functions() -> None:
    assert "soundex is refused" in refusal("select soundex(name) from customers")
    assert "SOUNDEX" in check("select soundex(name) from customers", functions={"SOUNDEX"}).sql


@needs_attacks
@pytest.mark.parametrize("dialect", ["postgres", "sqlite", "mysql", "duckdb"])
def test_no_statement_that_is_labelled_as_writing_passes(dialect: str) -> None:
    names = {word for item in attacks("sqlglot_statements_labelled.jsonl") for word in item["sql"].split()}
    tables = [VisibleTable(name, tuple("abcdefxyz")) for name in names if name.isidentifier()]
    labelled = attacks("sqlglot_statements_labelled.jsonl")
    passed = {"read_only": 0, "not_read_only": 0}
    for item in labelled:
        try:
            check(item["sql"], dialect, tables=tables)
        except ToolArgumentError:
            continue
        passed[item["label"]] += 1
    assert passed["not_read_only"] == 0
    assert passed["read_only"] > 100, "many of the 238 need tables, functions or dialects that are not here"


@pytest.mark.slow
@needs_attacks
def test_an_injection_that_is_a_text_stays_one_and_a_harmless_one_is_found() -> None:
    payloads = [
        item["payload"]
        for name in ("libinjection_sqli_fragments", "libinjection_false_positives")
        for item in attacks(f"{name}.jsonl")
    ]
    table = VisibleTable("customers", ("id", "name"), "main")
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("create table customers(id, name)")
        for number, payload in enumerate(payloads):
            connection.execute("insert into customers values (?, ?)", (number, payload))
            literal = "'" + payload.replace("'", "''") + "'"
            if "\0" in payload:
                continue
            query = check(f"select max(id) from customers where name = {literal}", "sqlite", tables=[table])
            assert connection.execute(query.sql).fetchall() == [(number,)], payload
    assert len(payloads) > 2_000


@pytest.mark.slow
@needs_attacks
def test_an_injection_that_breaks_out_of_its_quotes_reads_nothing_else() -> None:
    """A fragment pasted into a query is refused, or is a query of the visible table alone."""
    table = VisibleTable("customers", ("id", "name"), "main")
    for item in attacks("libinjection_sqli_fragments.jsonl"):
        for sql in (
            f"select id from customers where name = '{item['payload']}'",
            f"select id from customers where id = {item['payload']}",
        ):
            try:
                query = check(sql, "sqlite", tables=[table])
            except ToolArgumentError:
                continue
            assert {one.name for one in query.tables} <= {"customers"}
