"""XLSX files made here: cells by their place, nothing else."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from datetime import time
from html import escape

SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"

_CHART = f'<chartsheet xmlns="{SHEETS}"><sheetViews><sheetView workbookViewId="0"/></sheetViews></chartsheet>'
Cells = Mapping[str, object]
"""Place to value: a text, a number, XML of a cell's inside that begins with "<", a time, or an error such as #N/A."""
_STYLES = (
    f'<styleSheet xmlns="{SHEETS}"><fonts count="1"><font/></fonts><fills count="1"><fill/></fills>'
    '<borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs>'
    '<cellXfs count="2"><xf numFmtId="0" xfId="0"/><xf numFmtId="21" xfId="0"/></cellXfs></styleSheet>'
)
"""The second look of a cell is h:mm:ss."""


def workbook(sheets: Mapping[str, Cells | None], *, merged: str = "") -> bytes:
    """A workbook with these sheets, None for a chart's; `merged` is a range of the first."""
    parts = {
        f"xl/{_kind(cells)}s/sheet{at}.xml": _sheet(cells, merged) if cells is not None else _CHART
        for at, cells in enumerate(sheets.values(), 1)
    }
    numbered = list(enumerate(sheets, 1))
    named = "".join(f'<sheet name="{escape(name)}" sheetId="{at}" r:id="rId{at}"/>' for at, name in numbered)
    links = "".join(
        f'<Relationship Id="rId{at}" Type="{RELATIONS}/{_kind(cells)}" Target="{_kind(cells)}s/sheet{at}.xml"/>'
        for at, cells in enumerate(sheets.values(), 1)
    )
    kinds = "".join(
        f'<Override PartName="/{name}" '
        f'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.{name.split("/")[1][:-1]}+xml"/>'
        for name in parts
    )
    parts["xl/styles.xml"] = _STYLES
    links += f'<Relationship Id="look" Type="{RELATIONS}/styles" Target="styles.xml"/>'
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


def _kind(cells: Cells | None) -> str:
    return "chartsheet" if cells is None else "worksheet"


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
    if isinstance(value, time):
        seconds = value.hour * 3600 + value.minute * 60 + value.second
        return f'<c r="{place}" s="1"><v>{seconds / 86_400}</v></c>'
    if isinstance(value, str) and value.startswith("#"):
        return f'<c r="{place}" t="e"><v>{value}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'
