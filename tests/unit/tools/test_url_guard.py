"""Which URLs are refused before anything is looked up, and which addresses are public."""

from __future__ import annotations

import json
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.errors import ToolArgumentError
from graphrag_agent.tools._url_guard import WebAddress, check_url, is_public

SSRF = Path(__file__).parents[4] / "shared" / "data" / "security" / "ssrf"
needs_data = pytest.mark.skipif(not SSRF.is_dir(), reason="../shared/data is not laid here")
NEEDS_A_LOOK_UP = {
    *("62epax5fhvj3zzmzigyoe5ipkbn7fysllvges3a.302.r3dir.me", "169.254.169.254.nip.io"),
    *("metadata.tencentyun.com", "ssrf.localdomain.pw"),
}
"""Hosts in the data whose names look like any other; tests of the client show that their addresses are refused."""


def recorded_urls() -> list[str]:
    return [json.loads(line)["url"] for line in (SSRF / "ssrf_urls.jsonl").read_text().splitlines()]


def wpt_cases() -> list[dict[str, Any]]:
    return [case for case in json.loads((SSRF / "wpt_urltestdata.json").read_text()) if isinstance(case, dict)]


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://example.com", "https://example.com/"),
        (" HTTP://EXAMPLE.com:80/A?b=1#c ", "http://example.com/A?b=1"),
        ("https://example.com.:443/a b?q=ü", "https://example.com/a%20b?q=%C3%BC"),
        ("http://пример.рф/", "http://xn--e1afmkfd.xn--p1ai/"),
        ("http://xn--e1afmkfd.xn--p1ai/", "http://xn--e1afmkfd.xn--p1ai/"),
        ("http://8.8.8.8/", "http://8.8.8.8/"),
        ("http://[2606:4700:4700::1111]/", "http://[2606:4700:4700::1111]/"),
        ("http://[64:ff9b::808:808]/", "http://[64:ff9b::808:808]/"),
        ("https://example.com:80/", "https://example.com:80/"),
    ],
)
def test_public_urls_are_taken_and_written_in_one_way(text: str, url: str) -> None:
    assert check_url(text).url == url


REFUSED = {
    "other schemes": ["file:///etc/passwd", "gopher://example.com/", "ftp://example.com/", "javascript:alert(1)"],
    "no full URL": ["", "example.com", "/etc/passwd", "http://", "http:///x", "//example.com/", "http:example.com"],
    "user info": ["http://user@example.com/", "http://example.com:80@10.0.0.1/", "http://:@example.com/"],
    "ports": [
        "http://example.com:22/",
        "http://example.com:0/",
        "http://example.com:8080/",
        "http://example.com:99999/",
    ],
    "names of private networks": [
        *(
            "http://localhost/",
            "http://a.localhost/",
            "http://LOCALHOST./",
            "http://metadata/",
            "http://printer.local/",
        ),
        *("http://metadata.google.internal/", "http://router.home.arpa/", "http://x.onion/"),
    ],
    "other ways to write an address": [
        *(
            "http://127.1/",
            "http://0/",
            "http://0x7f.1/",
            "http://0x7f000001/",
            "http://2130706433/",
            "http://017700000001/",
        ),
        *(
            "http://0177.0.0.1/",
            "http://127.0.0.1.1/",
            "http://1.2.3/",
            "http://8.8.8.08/",
            "http://0x/",
            "http://1..1/",
        ),
        *("http://①②⑦.⓪.⓪.①/", "http://１２７.0.0.1/", "http://127。0。0。1/", "http://[::①]/"),
    ],
    "private addresses": [
        *(
            "http://127.0.0.1/",
            "http://10.0.0.1/",
            "http://192.168.1.1/",
            "http://172.16.0.1/",
            "http://169.254.169.254/",
        ),
        *(
            "http://100.100.100.200/",
            "http://192.0.0.192/",
            "http://168.63.129.16/",
            "http://0.0.0.0/",
            "http://127.0.0.1./",
        ),
        *("http://255.255.255.255/", "http://224.0.0.1/", "http://[::]/", "http://[::1]/", "http://[fe80::1]/"),
        *("http://[fc00::1]/", "http://[fd00:ec2::254]/", "http://[ff02::1]/", "http://[2001:db8::1]/"),
    ],
    "addresses in others": [
        *(
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[::127.0.0.1]/",
            "http://[64:ff9b::7f00:1]/",
        ),
        *(
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[64:ff9b:1::7f00:1]/",
            "http://[2002:7f00:1::]/",
            "http://[2001:0:7f00::1]/",
        ),
    ],
    "zone ids": ["http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[2606:4700::1%25lo]/"],
    "what programs read differently": [
        *(
            "http://example.com\\@127.0.0.1/",
            "http://127.0.0.1\\.example.com/",
            "http://exa\nmple.com/",
            "http://a\tb.com/",
        ),
        *(
            "http://example.com\x00.evil.com/",
            "http://exam ple.com/",
            "http://example%2ecom/",
            "http://example.com%00/",
        ),
        *("http://-example.com/", "http://example..com/", "http://" + "a" * 64 + ".com/", "http://exa_mple.com<x>/"),
    ],
    "length": ["http://example.com/" + "a" * 2000],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in REFUSED.items() for text in texts])
def test_what_is_no_public_page_is_refused_with_a_reason(kind: str, text: str) -> None:
    with pytest.raises(ToolArgumentError, match=r"is refused: .{10}") as raised:
        check_url(text)
    assert len(str(raised.value)) < 400


@needs_data
def test_recorded_attacks_are_refused_unless_only_their_name_server_can_tell() -> None:
    passed = set()
    for url in recorded_urls():
        try:
            passed.add(check_url(url).host)
        except ToolArgumentError:
            continue
    assert passed == NEEDS_A_LOOK_UP


@needs_data
def test_what_passes_names_the_host_that_browsers_read() -> None:
    """The cases of the web platform tests: a host that is read in two ways is the root of most attacks."""
    compared = 0
    for case in wpt_cases():
        try:
            base = check_url(case["base"]) if case.get("base") else None
            read = check_url(case["input"], base=base, ports=None)
        except ToolArgumentError:
            continue
        if case.get("failure"):
            # browsers know that this is no punycode; name servers will
            assert "xn--pokxncvks" in read.host
        elif case["input"] == "///test":
            assert read.host == base.host, "browsers leave the site here, and we stay"  # type: ignore[union-attr]
        else:
            assert (f"{read.scheme}:", read.host) == (case["protocol"], case["hostname"].strip("[]"))
            assert read.netloc == case["host"]
            compared += 1
    assert compared > 100


def test_a_relative_url_stays_on_the_site_and_another_site_is_checked() -> None:
    base = check_url("https://example.com/a/b?c")
    assert check_url("../d", base=base).url == "https://example.com/d"
    assert check_url("//other.com/x", base=base).url == "https://other.com/x"
    for text in ("//127.0.0.1/", "http://[::1]/", "file:///etc/passwd", "\\\\evil.com"):
        with pytest.raises(ToolArgumentError):
            check_url(text, base=base)


@given(st.ip_addresses(v=4))
def test_an_address_within_another_is_judged_as_itself(inner: Any) -> None:
    nat64 = ip_address(int(ip_address("64:ff9b::")) + int(inner))
    assert is_public(nat64) == is_public(inner)
    assert not is_public(ip_address(f"::ffff:{inner}"))
    assert not is_public(ip_address(int(ip_address("2002::")) + (int(inner) << 80)))


@given(st.ip_addresses())
def test_no_address_is_public_that_the_standard_library_calls_private(address: Any) -> None:
    assert not is_public(address) or (address.is_global and not address.is_multicast)


@pytest.mark.parametrize("network", ["127.0.0.0/8", "10.0.0.0/8", "192.0.0.0/24", "fe80::/10", "fc00::/7", "::/8"])
def test_both_ends_of_a_private_network_are_private(network: str) -> None:
    ends = ip_network(network)
    assert [is_public(ends[0]), is_public(ends[-1])] == [False, False]


@given(st.text(max_size=40), st.sampled_from(["http://{}", "https://{}/x", "http://example.com/{}", "{}"]))
def test_any_text_is_taken_or_refused_and_what_is_taken_reads_the_same_again(text: str, form: str) -> None:
    try:
        address = check_url(form.format(text))
    except ToolArgumentError:
        return
    assert isinstance(address, WebAddress)
    assert check_url(address.url) == address
    assert address.url.isascii() and " " not in address.url
