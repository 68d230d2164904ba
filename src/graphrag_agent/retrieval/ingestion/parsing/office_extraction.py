"""What kreuzberg reads from Office files: titles and pages, without the flaws that can be mended here.

Hostile files are read by it, so it runs in a worker process (`ingestion/workers/`), never in the application's own.
"""

from __future__ import annotations

import io
import re
import secrets
import zipfile
from typing import Any

from graphrag_agent.errors import ParseError

MAX_UNPACKED_BYTES = 500_000_000
_OPEN_XML = "application/vnd.openxmlformats-officedocument."
MIME_TYPES = {
    ".docx": _OPEN_XML + "wordprocessingml.document",
    ".pptx": _OPEN_XML + "presentationml.presentation",
    ".xlsx": _OPEN_XML + "spreadsheetml.sheet",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".epub": "application/epub+zip",
    ".rtf": "application/rtf",
}
_MARKS = {
    ".docx": ("word/document.xml",),
    ".pptx": ("ppt/presentation.xml",),
    ".xlsx": ("xl/workbook.xml", "xl/workbook.bin"),
    ".odt": ("content.xml",),
    ".epub": ("META-INF/container.xml",),
}
"""A file inside the archive that tells the format, whatever the suffix says."""
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_OFFICE = "EncryptedPackage".encode("utf-16-le")
_ENCRYPTED_BIT = 0x1
_LARGEST_PART = 100_000_000
"""kreuzberg refuses larger ones."""
_REFERENCES = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'"}
_STAND_INS = {character: chr(0x10FFF0 + at) for at, character in enumerate("&<>\"'_*~")}
"""Private characters for what kreuzberg 4.10 drops from Word documents (AT&amp;T would become ATT) or mixes up with its
own marks."""
_TO_STAND_INS = str.maketrans(_STAND_INS)
_FROM_STAND_INS = str.maketrans({mark: character for character, mark in _STAND_INS.items()})
_TEXT_TO_MARK = re.compile(rb">[^<>]*[&_*~][^<]*")
_REFERENCE = re.compile(r"&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|\w+);")
_UNDERLINE = re.compile(r"__(?=\S)(.+?)(?<=\S)__")
_MARKS_IN_CELLS = re.compile(r"\\</?u\\>|(?:\\[*~])+")
"""Bold, struck and underlined words, as kreuzberg writes them in cells; the text's own characters have stand-ins."""
_NOTES = "\n\nNotes:\n\n"
_CELL_ERRORS = {
    f"#ERR: {told}": written
    for told, written in (
        ("Div0", "#DIV/0!"),
        ("NA", "#N/A"),
        ("Name", "#NAME?"),
        ("Null", "#NULL!"),
        ("Num", "#NUM!"),
        ("Ref", "#REF!"),
        ("Value", "#VALUE!"),
        ("GettingData", "#GETTING_DATA"),
    )
}
"""How kreuzberg writes what a spreadsheet shows for a formula that failed."""
_TIME_OF_DAY = re.compile(r"1899-12-31 (\d\d:\d\d:\d\d)")
"""A time without a date; kreuzberg puts the day in front at which a spreadsheet's calendar begins."""


def extract(suffix: str, data: bytes) -> dict[str, Any]:
    """The title in the file's metadata, and its pages: slides, sheets, or the whole text. Raises ParseError."""
    try:
        _refuse_unreadable(suffix, data)
        if suffix == ".xlsx":
            return _sheets(data)
        return _slides(data) if suffix == ".pptx" else _whole(suffix, data)
    except (ParseError, MemoryError):
        raise
    except Exception as error:  # a damaged file can raise anything
        reason = str(error).removeprefix(f"{type(error).__name__}: ")[:160]
        is_bomb = "security limit" in reason.lower()
        text = "unpacks to too much" if is_bomb else f"damaged or not a {suffix[1:]} file"
        remedy = "split it into smaller files" if is_bomb else "open it and save it anew"
        raise ParseError(f"{text} ({reason}); {remedy}") from error


def _refuse_unreadable(suffix: str, data: bytes) -> None:
    if not data:
        raise ParseError("an empty file; add text or leave it out")
    if data.startswith(_OLD_OFFICE):
        if _ENCRYPTED_OFFICE in data:
            raise ParseError("protected by a password; save a copy without one")
        raise ParseError(f"an Office file of the old kind; save it as {suffix}")
    if suffix != ".rtf":
        _refuse_archive(suffix, data)
    elif not data.lstrip().startswith(b"{\\rtf"):
        raise ParseError("not an rtf file; give it the suffix of what it is")


def _refuse_archive(suffix: str, data: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = archive.infolist()
        manifest = b""
        if suffix == ".odt" and "META-INF/manifest.xml" in archive.namelist():
            with archive.open("META-INF/manifest.xml") as opened:
                manifest = opened.read(1_000_000)
    if sum(file.file_size for file in files) > MAX_UNPACKED_BYTES:
        raise ParseError("unpacks to more than 500 MB; split it into smaller files")
    if b"encryption-data" in manifest or any(file.flag_bits & _ENCRYPTED_BIT for file in files):
        raise ParseError("protected by a password; save a copy without one")
    names = {file.filename for file in files}
    if names.isdisjoint(_MARKS[suffix]):
        others = [other for other, marks in _MARKS.items() if not names.isdisjoint(marks)]
        if others:
            raise ParseError(f"a {others[0][1:]} file, not {suffix[1:]}; give it the suffix {others[0]}")


def _read(suffix: str, data: bytes, *, text_format: str = "markdown", mark: str | None = None) -> Any:
    from kreuzberg import ExtractionConfig, PageConfig, extract_bytes_sync

    # without the cache: it would leave copies of private documents in a folder that no scope guards
    pages = PageConfig(insert_page_markers=True, marker_format=f"\n{mark}{{page_num}}\n") if mark else None
    config = ExtractionConfig(output_format=text_format, use_cache=False, pages=pages)
    return extract_bytes_sync(data, MIME_TYPES[suffix], config=config)


def _title(found: Any) -> str:
    return str(found.metadata.get("title") or "")


def _whole(suffix: str, data: bytes) -> dict[str, Any]:
    if suffix != ".docx":
        found = _read(suffix, data)
        return {"title": _title(found), "pages": [{"text": found.content}]}
    found = _read(suffix, _with_stand_ins(data))
    text = _UNDERLINE.sub(r"\1", _MARKS_IN_CELLS.sub("", found.content))
    return {"title": _restored(_title(found)), "pages": [{"text": _restored(text)}]}


def _with_stand_ins(data: bytes) -> bytes:
    """The Word document with stand-ins for the references in its text."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(out, "w") as rewritten:
        for part in archive.infolist():
            if not part.filename.endswith(".xml"):
                if part.filename.endswith(".rels"):
                    rewritten.writestr(part.filename, archive.read(part))
                continue  # pictures and fonts have no text
            if part.file_size > _LARGEST_PART:
                return data
            rewritten.writestr(part.filename, _TEXT_TO_MARK.sub(_stand_in_text, archive.read(part)))
    return out.getvalue()


def _stand_in_text(found: re.Match[bytes]) -> bytes:
    try:
        text = _REFERENCE.sub(_resolved, found.group()[1:].decode())
    except UnicodeDecodeError:  # not UTF-8; better without its references than not at all
        return found.group()
    return b">" + text.translate(_TO_STAND_INS).encode()


def _resolved(reference: re.Match[str]) -> str:
    decimal, hexadecimal = reference.groups()
    if not decimal and not hexadecimal:
        # any other is one that only a DTD explains, and those are refused elsewhere
        return _REFERENCES.get(reference.group(), " ")
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if 0x20 <= code < 0xD800 or 0xE000 <= code <= 0x10FFFF else " "


def _restored(text: str) -> str:
    return text.translate(_FROM_STAND_INS)


def _slides(data: bytes) -> dict[str, Any]:
    mark = f"slide-{secrets.token_hex(8)}-"  # nothing that a file could hold
    found = _read(".pptx", data, mark=mark)
    # the Markdown lacks the speaker's notes, the plain text has them
    plain = _split_slides(_read(".pptx", data, text_format="plain", mark=mark).content, mark)
    pages = []
    for number, text in _split_slides(found.content, mark).items():
        notes = plain.get(number, "").rpartition(_NOTES)[2] if _NOTES in plain.get(number, "") else ""
        pages.append({"number": number, "text": text, "notes": "" if notes.strip() in text else notes.strip()})
    return {"title": _title(found), "pages": pages}


def _split_slides(content: str, mark: str) -> dict[int, str]:
    parts = re.split(re.escape(mark) + r"(\d+)", content)
    return {int(number): text.strip() for number, text in zip(parts[1::2], parts[2::2], strict=True)}


def _sheets(data: bytes) -> dict[str, Any]:
    found = _read(".xlsx", data)
    names = found.metadata.get("sheet_names") or []
    pages = []
    for table in found.tables:
        name = names[table.page_number - 1] if table.page_number <= len(names) else ""
        rows = [[_shown_cell(cell) for cell in row] for row in table.cells]
        pages.append({"number": table.page_number, "name": name, "rows": rows})
    return {"title": _title(found), "pages": pages}


def _shown_cell(cell: str) -> str:
    """As a spreadsheet shows it."""
    if cell.startswith("#ERR: "):
        return _CELL_ERRORS.get(cell, cell)
    time = _TIME_OF_DAY.fullmatch(cell) if cell.startswith("1899-12-31 ") else None
    return time[1] if time else cell
