"""XLSX files made here: cells by their place, nothing else."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from html import escape

SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"

Cells = Mapping[str, object]
"""Place to value: a text, a number, or XML of a cell's inside that begins with "<"."""


def workbook(sheets: Mapping[str, Cells], *, merged: str = "") -> bytes:
    """A workbook with these sheets; `merged` is a range of the first."""
    parts = {f"xl/worksheets/sheet{at}.xml": _sheet(cells, merged) for at, cells in enumerate(sheets.values(), 1)}
    numbered = list(enumerate(sheets, 1))
    named = "".join(f'<sheet name="{escape(name)}" sheetId="{at}" r:id="rId{at}"/>' for at, name in numbered)
    links = "".join(
        f'<Relationship Id="rId{at}" Type="{RELATIONS}/worksheet" Target="worksheets/sheet{at}.xml"/>'
        for at, _ in numbered
    )
    kinds = "".join(
        f'<Override PartName="/{name}" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
        for name in parts
    )
    parts["xl/workbook.xml"] = f'<workbook xmlns="{SHEETS}" xmlns:r="{RELATIONS}"><sheets>{named}</sheets></workbook>'
    parts["xl/_rels/workbook.xml.rels"] = f'<Relationships xmlns="{PACKAGE}/relationships">{links}</Relationships>'
    parts["_rels/.rels"] = (
        f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" Type="{RELATIONS}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>'
    )
    parts["[Content_Types].xml"] = (
        f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" '
        f'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>{kinds}</Types>'
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return out.getvalue()


def _sheet(cells: Cells, merged: str) -> str:
    rows: dict[str, list[str]] = {}
    for place, value in cells.items():
        rows.setdefault(place.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), []).append(_cell(place, value))
    data = "".join(f'<row r="{number}">{"".join(row)}</row>' for number, row in rows.items())
    joined = f'<mergeCells><mergeCell ref="{merged}"/></mergeCells>' if merged else ""
    return f'<worksheet xmlns="{SHEETS}"><sheetData>{data}</sheetData>{joined}</worksheet>'


def _cell(place: str, value: object) -> str:
    if isinstance(value, str) and value.startswith("<"):
        return f'<c r="{place}">{value}</c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'
