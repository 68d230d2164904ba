from email.message import EmailMessage

import pytest

from graphrag_agent.errors import ParseError
from graphrag_agent.retrieval.ingestion.chunking import split_document
from graphrag_agent.retrieval.ingestion.parsing.mail import MAX_FORWARD_DEPTH, MAX_TEXT_PARTS, parse_mail


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


def parts(*parts: str, kind: str = "mixed") -> str:
    """A multipart of parts that bring their own headers."""
    mark = f"b{len(''.join(parts))}"  # longer than those of the parts inside
    body = "".join(f"--{mark}\n{part}\n" for part in parts)
    return f"Content-Type: multipart/{kind}; boundary={mark}\n\n{body}--{mark}--\n"


def body_of(mime: str) -> str:
    return parse_mail(f"Subject: Offer\n{mime}".encode(), "Stem").text.removeprefix("Subject: Offer\n")


PICTURE = 'Content-Type: image/png\nContent-Disposition: inline; filename="pump.png"\n\nx\n'
DRAWING = "Content-Type: image/png\n\nx\n"
PLAIN, HTML = "Content-Type: text/plain\n\n", "Content-Type: text/html\n\n"
CONTRACT = "From: cy@example.com\nTo: ana@example.com\nSubject: Contract\nDate: Mon, 6 May 2024\n"
FORWARD = f"Content-Type: message/rfc822\n\n{CONTRACT}\nThe notice period is ninety days.\n"


def test_text_after_an_inline_picture_is_read() -> None:
    mime = parts(f"{PLAIN}Here is the pump:\n", PICTURE, f"{PLAIN}It costs 4,200 EUR.\n", f"{HTML}<p>Valid <b>now</b>.")
    assert body_of(mime) == "Attachments: pump.png\n\nHere is the pump:\n\nIt costs 4,200 EUR.\n\nValid **now**."


@pytest.mark.parametrize(
    ("choices", "read"),
    [
        ((f"{PLAIN}plain", f"{HTML}<p>html"), "plain"),
        ((f"{HTML}<p>html", f"{PLAIN}plain"), "plain"),
        ((f"{PLAIN} \n", f"{HTML}<p>html"), "html"),
        ((f"{PLAIN}plain", parts(f"{HTML}<p>one", DRAWING, f"{HTML}<p>two")), "plain"),
        ((DRAWING, parts(f"{HTML}<p>one", DRAWING, f"{HTML}<p>two")), "one\n\ntwo"),
        ((DRAWING,), ""),
    ],
)
def test_one_alternative_is_read(choices: tuple[str, ...], read: str) -> None:
    mime = parts(f"{PLAIN}before", parts(*choices, kind="alternative"), f"{PLAIN}after")
    assert body_of(mime).strip() == "\n\n".join(filter(None, ["before", read, "after"]))


def test_a_forwarded_message_is_read_below_its_headers() -> None:
    data = f"Subject: Fwd\n{parts(f'{PLAIN}see below', FORWARD, f'{PLAIN}Best, Ana')}".encode()
    parsed = parse_mail(data, "Stem")
    assert parsed.text == (
        "Subject: Fwd\n\nsee below\n\nSubject: Contract\nFrom: cy@example.com\nDate: Mon, 6 May 2024\n\n"
        "The notice period is ninety days.\n\nBest, Ana"
    )
    found = [(section.kind, section.heading, parsed.text[section.start : section.end]) for section in parsed.sections]
    assert [(kind, heading) for kind, heading, _ in found[2:]] == [
        ("heading", "Contract"),
        ("prose", "Contract"),
        ("prose", ""),
    ]
    assert found[3][2] == "The notice period is ninety days."
    (passage,) = [passage for passage in split_document(parsed) if passage.heading == "Contract"]
    assert "cy@example.com" in passage.text and "ninety" in passage.text


def test_a_forward_inside_a_forward_stands_under_both_subjects() -> None:
    inner = f"Content-Type: message/rfc822\n\nSubject: Annex\n{HTML}<h1>Fees</h1><p>None.</p>"
    parsed = parse_mail(f"Content-Type: message/rfc822\nFrom: x\n\nSubject: Contract\n{inner}".encode(), "Stem")
    assert parsed.sections[-1].heading == "Contract > Annex > Fees"


def test_an_attached_message_and_attached_text_are_named_and_not_read() -> None:
    attached = FORWARD.replace("\n\n", "\nContent-Disposition: attachment\n\n", 1)
    log = "Content-Type: text/plain\nContent-Disposition: attachment; filename=run.log\n\nboot\n"
    nameless = "Content-Type: message/rfc822\nContent-Disposition: attachment\n\nFrom: x\n\nhi\n"
    text = body_of(parts(f"{PLAIN}see them", attached, log, nameless))
    assert text == "Attachments: Contract, run.log, message\n\nsee them"


def test_reports_of_delivery_and_empty_parts_add_nothing() -> None:
    report = "Content-Type: message/delivery-status\n\nReporting-MTA: dns; x\n\nStatus: 5.1.1\n"
    assert body_of(parts(f"{PLAIN}It bounced.", report, f"{PLAIN} ", kind="report")) == "\nIt bounced."


def forwards(depth: int) -> bytes:
    return b"".join(b"Subject: at %d\nContent-Type: message/rfc822\n\n" % at for at in range(depth))


def test_forwards_that_are_nested_too_deep_to_read_are_named() -> None:
    inner = b"Subject: deep\n\nword"
    assert parse_mail(forwards(MAX_FORWARD_DEPTH) + inner, "").text.endswith("Subject: deep\n\nword")
    parsed = parse_mail(forwards(MAX_FORWARD_DEPTH + 1) + inner, "")
    assert "Attachments: deep\n\n" in parsed.text and "word" not in parsed.text


def test_endless_headers_of_a_forward_are_cut_short() -> None:
    data = b"Subject: x\nContent-Type: message/rfc822\n\nFrom: " + b"ana@example.com, " * 10_000 + b"\n\nword"
    assert len(parse_mail(data, "").text) < 300


def test_too_many_text_parts_are_refused() -> None:
    parse_mail(f"Subject: x\n{parts(*[f'{PLAIN}a'] * MAX_TEXT_PARTS)}".encode(), "")
    with pytest.raises(ParseError, match="too many parts; save"):
        parse_mail(f"Subject: x\n{parts(*[f'{PLAIN}a'] * (MAX_TEXT_PARTS + 1))}".encode(), "")
    with pytest.raises(ParseError, match="nested too deep; save"):
        parse_mail(forwards(1500), "")
