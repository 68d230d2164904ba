import json
from collections.abc import Callable

import pytest

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.parsing.json_records import parse_json, parse_json_lines
from graphrag_agent.retrieval.ingestion.parsing.parsed_document import ParsedDocument


def lines(value: object) -> list[str]:
    return parse_json(json.dumps(value).encode(), "Stem").text.split("\n")


def test_a_record_is_one_line_of_named_values() -> None:
    records = [{"sku": "K-1", "tags": ["red", "new"], "maker": {"name": "Kite\nLtd", "city": None}, "sold": True}, "x"]
    assert lines(records) == ["sku: K-1; tags: red, new; maker.name: Kite Ltd; sold: true", "x"]


def test_numbers_stay_as_they_are_written() -> None:
    assert parse_json(b'{"version": 1.10, "id": 12345678901234567890123}', "").text == (
        "version: 1.10; id: 12345678901234567890123"
    )


def test_lists_of_objects_are_sections_below_their_name() -> None:
    parsed = parse_json(b'{"shop": "North", "items": [{"n": 1, "sub": [{"m": 2}]}, {"n": 3}]}', "Stem")
    found = [(section.heading, parsed.text[section.start : section.end]) for section in parsed.sections]
    assert found == [("", "shop: North"), ("items", "n: 1; sub.1.m: 2\nn: 3")]


@pytest.mark.parametrize("parse", [parse_json, parse_json_lines])
def test_json_lines_are_read_by_either_suffix(parse: Callable[[bytes, str], ParsedDocument]) -> None:
    parsed = parse('\ufeff{"a": "ж"}\n\n{"a": 2}\r\n'.encode("utf-16-le"), "Stem")
    assert (parsed.text, parsed.source_type) == ("a: ж\na: 2", "json")


@pytest.mark.parametrize("data", [b"[]", b"{}", b"null", b'{"a": null}'])
def test_what_says_nothing_is_blank(data: bytes) -> None:
    assert parse_json(data, "Stem").is_blank


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{\n'a': 1}", "not valid JSON: line 2, Expecting property name"),
        (b'{"a": 1}\n{"a": ', "line 2 is not valid JSON"),
        (b"[" * 100_000, "nested too deep"),
        (b"", "not valid JSON: line 1"),
    ],
)
def test_damaged_json_is_refused_with_its_line(data: bytes, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse_json(data, "Stem")


def test_half_of_a_surrogate_pair_can_be_stored() -> None:
    assert parse_json(rb'["a\ud83d b"]', "").text == "a\ufffd b"
