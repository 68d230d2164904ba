"""From bytes to text: by BOM, as UTF-8, else by what chardet finds. Never with replacement characters."""

from __future__ import annotations

import codecs
import re

from graphrag_agent.errors import ParseError

_BOMS = (
    # the UTF-32 mark begins with the UTF-16 one, so it comes first
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SUPERSETS = {"gb2312": "gb18030", "gbk": "gb18030"}
_DETECTED_BYTES = 1_000_000
_LONE_SYMBOLS = re.compile(
    rb"(?<![\x80-\xff])[\x80\x84-\x87\x91-\x97\x99\xa0-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf](?![\x80-\xff])"
)
"""Such as the euro, the pound, the degree, quotes and dashes in Windows' western encoding."""
_ASCII = bytes(range(128))
_NUL_SHARE_OF_UTF16 = 0.25
"""Western text in UTF-16 without BOM is half NUL bytes; zip and image files stay far below."""
_CONTROL_SHARE_OF_BINARY = 0.02


def decode_text(data: bytes) -> str:
    """The bytes as text, line ends kept, a BOM dropped. Raises ParseError for binaries and unknown encodings."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _checked(_decode(data[len(mark) :], encoding))
    if b"\0" not in data:
        try:
            return _checked(data.decode("utf-8"))
        except UnicodeDecodeError:
            pass
    elif data.count(0) < len(data) * _NUL_SHARE_OF_UTF16:
        raise ParseError("a binary file, not text; export it as text")
    return _checked(_decode(data, _detect(data)))


def _detect(data: bytes) -> str:
    import chardet

    if b"\0" not in data and not _LONE_SYMBOLS.sub(b"", data).translate(None, _ASCII):
        return "windows-1252"  # other signs in it than letters tell nothing of a language
    size = min(len(data), _DETECTED_BYTES)
    found = chardet.detect(data, max_bytes=size)
    # of a few letters it is as little sure of DOS and old Macs as of what is written today
    usual = chardet.detect(
        data, max_bytes=size, encoding_era=chardet.EncodingEra.MODERN_WEB | chardet.EncodingEra.LEGACY_ISO
    )
    best = usual if usual["encoding"] and 2 * usual["confidence"] >= found["confidence"] else found
    if best["encoding"] is None:
        raise ParseError("a binary file or an unknown encoding; save it as UTF-8")
    return _SUPERSETS.get(best["encoding"].lower(), best["encoding"])


def _decode(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError) as error:
        raise ParseError(f"not valid {encoding} text; save it as UTF-8") from error


def _checked(text: str) -> str:
    # C0 controls without tab, line ends, form feed and escape: rare in text, every tenth byte of a binary
    control = sum(text.count(chr(code)) for code in range(32) if code not in (9, 10, 11, 12, 13, 27))
    if control > max(1, len(text) * _CONTROL_SHARE_OF_BINARY):
        raise ParseError("a binary file, not text; export it as text")
    return text
