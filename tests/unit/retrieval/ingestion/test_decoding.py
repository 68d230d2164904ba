import codecs

import pytest

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.parsing.decoding import decode_text

RUSSIAN = "В гимназии он не был в числе первых учеников, исключение составляли математика и латынь. " * 3


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\r\nb", "a\r\nb"),
        (codecs.BOM_UTF8 + "é".encode(), "é"),
        (codecs.BOM_UTF16_LE + "年假".encode("utf-16-le"), "年假"),
        (codecs.BOM_UTF32_LE + "年假".encode("utf-32-le"), "年假"),
        ("plain words without a mark".encode("utf-16-le"), "plain words without a mark"),
        (RUSSIAN.encode("cp1251"), RUSSIAN),
        (
            ("年假需要提前十天申请，除非主管书面同意。" * 4).encode("gb18030"),
            "年假需要提前十天申请，除非主管书面同意。" * 4,
        ),
    ],
    ids=["utf-8", "utf-8 bom", "utf-16 bom", "utf-32 bom", "utf-16 bare", "cp1251", "gb18030"],
)
def test_text_is_decoded_and_only_the_bom_is_dropped(data: bytes, text: str) -> None:
    assert decode_text(data) == text


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Straße;Größe\nMünchen;1,5\nKöln;2,5\n"),
        ("cp1252", "item;preis\nSchraube;1,20 €\nMutter;0,30 €\n"),
        ("cp1252", "namn;ort\nÅsa Öberg;Malmö\n"),
        ("cp1252", "price £,temp °C\n£12,5°\n"),
        ("cp1252", "“quoted” – and dashed…\n"),
        ("cp1250", "Łódź;Kraków\nŻółw;Gęś\n"),
        ("cp1251", "Имя\nДа\n"),
        ("cp866", "Город;Население\nМосква;13\n"),
        ("cp437", "Müller;Köln\nBjörk;Größe\n"),
        ("mac_roman", "Müller;Köln\nBjörk;Größe\n"),
        ("shift_jis", "名前;年齢\n佐藤;23\n"),
    ],
)
def test_a_few_letters_are_read_in_the_encoding_that_is_likely(encoding: str, text: str) -> None:
    assert decode_text(text.encode(encoding)) == text


@pytest.mark.parametrize(
    "data",
    [b"PK\x03\x04\x14\0\0\0\x08\0abc\xff\xfe" * 9, bytes(range(1, 32)) * 9, codecs.BOM_UTF16_LE + b"\x00\xd8x"],
    ids=["zip", "controls", "half a surrogate"],
)
def test_what_is_not_text_is_refused_with_a_remedy(data: bytes) -> None:
    with pytest.raises(ParseError, match=r"export it as text|save it as UTF-8"):
        decode_text(data)
