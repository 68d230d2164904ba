"""Where the used cells of a workbook's sheets begin, which its parser doesn't tell."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple

_SHEET = re.compile(rb"<(?:\w+:)?sheet\s[^>]*?\br?:?id=\"([^\"]+)\"[^>]*>")
_RELATION = re.compile(rb"<(?:\w+:)?Relationship\s[^>]*>")
_ATTRIBUTE = re.compile(rb"(\w+)=\"([^\"]*)\"")
_CELL = re.compile(rb"<(?:\w+:)?c\s[^>]*?\br=\"([A-Z]{1,3})(\d{1,7})\"[^>]*(?<!/)>")
"""A cell with something in it; one that only has a style closes itself."""
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\s[^>]*?\bref=\"[A-Z]{1,3}(\d{1,7}):[A-Z]{1,3}(\d{1,7})\"")
_LOST_FORMULA = re.compile(
    rb"<(?:\w+:)?c\s[^>]*?\br=\"[A-Z]{1,3}(\d{1,7})\"[^>]*>\s*<(?:\w+:)?f\b[^>]*>[^<]*</(?:\w+:)?f>"
    rb"\s*(?:<v\s*/>|<v></v>)?\s*</(?:\w+:)?c>"
)


class Place(NamedTuple):
    """A cell, from 1."""

    row: int
    column: int


class UsedCells(NamedTuple):
    """The rectangle of a sheet's cells that hold something."""

    first: Place
    size: tuple[int, int]
    """Rows and columns."""
    lost_formulas: list[int]
    """The rows of formulas whose result is not in the file."""
    merged_rows: list[tuple[int, int]]
    """First and last row of the merged cells that are several rows high."""


def sheet_places(data: bytes) -> dict[str, UsedCells]:
    """By the sheet's name; sheets that can't be understood are left out."""
    found = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name, part in _parts(archive):
            xml = archive.read(part)
            cells = [(int(row), _column(letters)) for letters, row in _CELL.findall(xml)]
            if cells:
                rows, columns = zip(*cells, strict=True)
                first = Place(min(rows), min(columns))
                size = (max(rows) - first.row + 1, max(columns) - first.column + 1)
                merged = [(int(top), int(bottom)) for top, bottom in _MERGED.findall(xml) if top != bottom]
                found[name] = UsedCells(first, size, list(map(int, _LOST_FORMULA.findall(xml))), merged)
    return found


def _parts(archive: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """The sheets' names, and where each is in the archive. Numbers won't do: the parser counts no sheet of a chart."""
    names = set(archive.namelist())
    if not {"xl/workbook.xml", "xl/_rels/workbook.xml.rels"} <= names:
        return
    targets = {}
    for relation in _RELATION.findall(archive.read("xl/_rels/workbook.xml.rels")):
        told = dict(_ATTRIBUTE.findall(relation))
        targets[told.get(b"Id")] = told.get(b"Target", b"").decode()
    for sheet in _SHEET.finditer(archive.read("xl/workbook.xml")):
        name = dict(_ATTRIBUTE.findall(sheet[0])).get(b"name", b"").decode()
        target = targets.get(sheet[1], "")
        part = target.removeprefix("/") if target.startswith("/") else f"xl/{target}"
        if part in names:
            yield unescape(name), part


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number


def column_letters(number: int) -> str:
    """The column's name in a spreadsheet: 1 is A, 27 is AA."""
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
