from email.message import EmailMessage

import pytest

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.parsing.mail import parse_mail


def mail(subject: str = "Flüge am 6. Mai") -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = subject, "Ana <ana@example.com>", "bo@example.com"
    message["Date"] = "Mon, 06 May 2024 10:00:00 +0200"
    return message


HEAD = (
    "Subject: Flüge am 6. Mai\nFrom: Ana <ana@example.com>\nTo: bo@example.com\nDate: Mon, 06 May 2024 10:00:00 +0200"
)


def test_headers_and_body_are_the_text_and_the_subject_the_title() -> None:
    message = mail()
    message.set_content("Grüße aus Köln.\n\n> alt\n")
    parsed = parse_mail(message.as_bytes(), "Stem")
    assert parsed.text == f"{HEAD}\n\nGrüße aus Köln.\n\n> alt"
    assert (parsed.title, parsed.source_type) == ("Flüge am 6. Mai", "eml")
    assert [parsed.text[section.start : section.end] for section in parsed.sections] == [
        HEAD,
        "Grüße aus Köln.\n\n> alt",
    ]


def test_plain_text_is_preferred_and_attachments_are_named() -> None:
    message = mail()
    message.set_content("plain")
    message.add_alternative("<p>html</p>", subtype="html")
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="plan.pdf")
    assert parse_mail(message.as_bytes(), "Stem").text == f"{HEAD}\nAttachments: plan.pdf\n\nplain"


def test_html_alone_becomes_sections() -> None:
    message = mail()
    message.set_content("<h1>Plan</h1><p>Read <b>this</b>.</p><script>x</script>", subtype="html")
    parsed = parse_mail(message.as_bytes(), "Stem")
    found = [(section.heading, parsed.text[section.start : section.end].strip()) for section in parsed.sections[1:]]
    assert found == [("Plan", "# Plan"), ("Plan", "Read **this**.")]


@pytest.mark.parametrize("charset", ["windows-1251", "utf-8", "no-such-charset"])
def test_a_body_whose_charset_is_wrong_or_unknown_is_still_read(charset: str) -> None:
    text = "Привет всем, кто работает сегодня удалённо. Собрание начнётся в десять часов утра."
    head = f"Subject: x\nContent-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n\n"
    assert text in parse_mail(head.encode() + text.encode("windows-1251"), "Stem").text


def test_a_subject_in_raw_utf8_is_read() -> None:
    assert parse_mail("Subject: Привет\n\nx".encode(), "Stem").title == "Привет"


@pytest.mark.parametrize("data", [b"", b"\r\n\r\n", b"just some words", b"\x89PNG\r\n\x1a\n\0\0"])
def test_what_has_no_headers_is_no_mail(data: bytes) -> None:
    with pytest.raises(ParseError, match="no headers; give it the suffix of what it is"):
        parse_mail(data, "Stem")


@pytest.mark.parametrize(
    "head", ["Date: not a date", "From: <<<@@>>>, ;", "To: =?utf-8?b?!!!?=", "Subject: =?bad?q?x?="]
)
def test_odd_headers_do_not_cost_the_mail(head: str) -> None:
    assert "body" in parse_mail(f"Subject: ok\n{head}\n\nbody".encode(), "Stem").text


def test_endless_recipients_are_cut_short() -> None:
    parsed = parse_mail(b"To: " + b"ana@example.com, " * 100_000 + b"\nSubject: x\n\nbody", "Stem")
    assert len(parsed.text) < 2100 and parsed.text.endswith("…\n\nbody")


def nested(depth: int) -> bytes:
    opened = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (at, at) for at in range(depth))
    return b"Subject: x\n" + opened


@pytest.mark.parametrize(
    ("data", "reason"),
    [(nested(3000), "nested too deep; save its text"), (b"Subject: x\n" + b"\n--" * 20_001, "too many parts; save")],
)
def test_mail_bombs_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse_mail(data, "Stem")


def test_encoded_words_across_lines_are_joined() -> None:
    head = "Subject: =?utf-8?b?0J/RgNC4?=\n =?koi8-r?q?=D7=C5=D4?= all\n\nx"
    assert parse_mail(head.encode(), "Stem").title == "Привет all"
