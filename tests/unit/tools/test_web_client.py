"""One GET of a public page: where it may go, what it tells, and what ends it."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import socket
import ssl
import threading
import time
import tracemalloc
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.errors import ToolError, ToolFailedError
from graphrag_agent.tools._robots import RobotsCache, parse_robots
from graphrag_agent.tools._web_client import MAX_REDIRECTS, Download, WebClient, follow
from graphrag_agent.tools._web_network import Network, PublicNetwork
from tests.fake_web import PUBLIC_IP, Answer, FakeWeb, StubNetwork, page, redirect

SSRF = Path(__file__).parents[4] / "shared" / "data" / "security" / "ssrf" / "ssrf_urls.jsonl"
HELLO = page("<p>Hello")
METADATA = "http://169.254.169.254/latest/meta-data/"


async def anything(_: Any) -> None:
    return None


async def get(network: Network, url: str, *, max_bytes: int = 100_000) -> Download:
    client = WebClient(network)
    return await follow(client, client.check(url), max_bytes=max_bytes, allowed=anything)


async def refusal(web: FakeWeb, url: str) -> str:
    with pytest.raises(ToolError) as raised:
        await get(web.network, url)
    return str(raised.value)


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Starts a made-up web whose every connection ends at it."""
    started: list[Any] = []

    def start(
        sites: Mapping[str, Mapping[str, Answer]], names: Mapping[str, Sequence[Sequence[str]]] | None = None
    ) -> FakeWeb:
        web = FakeWeb(sites, names).__enter__()
        wiring = web.wired(monkeypatch)
        wiring.__enter__()
        started.append((wiring, web))
        return web

    yield start
    for wiring, web in reversed(started):
        wiring.__exit__(None, None, None)
        web.__exit__()


async def test_a_page_comes_from_the_address_that_was_looked_up_once(serve: Any) -> None:
    web = serve({"site.example": {"/a?b=1": HELLO}})
    found = await get(web.network, "http://site.example/a?b=1#c")
    assert (found.data, found.media_type, found.charset, found.status) == (b"<p>Hello", "text/html", "utf-8", 200)
    assert (found.address.url, found.is_cut) == ("http://site.example/a?b=1", False)
    assert (web.network.asked, web.connected) == (["site.example"], [(PUBLIC_IP, 80)])


async def test_a_request_tells_nothing_of_who_asks(serve: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    cookie = {"set-cookie": "who=me; Domain=.site.example; Path=/"}
    to_next = Answer(status=302, headers={"location": "/next", **cookie})
    web = serve({"site.example": {"/": to_next, "/next": HELLO}})
    await get(web.network, "http://site.example/")
    await get(web.network, "http://site.example/next")
    assert web.urls == ["http://site.example/", "http://site.example/next", "http://site.example/next"]
    for _, headers in web.requests:
        assert headers.pop("user-agent") == "Mozilla/5.0 (compatible; graphrag-agent)"
        assert headers.pop("accept").startswith("text/html,")
        assert headers == {"host": "site.example", "accept-encoding": "gzip", "connection": "close"}


async def test_a_name_that_flips_to_a_private_address_is_connected_where_it_was_checked(serve: Any) -> None:
    web = serve({"flip.example": {"/": HELLO}}, {"flip.example": [[PUBLIC_IP], ["127.0.0.1"]]})
    assert (await get(web.network, "http://flip.example/")).data == b"<p>Hello"
    assert web.connected == [(PUBLIC_IP, 80)]
    assert "private or reserved address" in await refusal(web, "http://flip.example/")
    assert web.connected == [(PUBLIC_IP, 80)], "the second look-up was checked, and nothing connected"


async def test_a_name_that_flips_between_redirects_is_checked_each_time(serve: Any) -> None:
    web = serve(
        {"flip.example": {"/": redirect("/secret"), "/secret": HELLO}}, {"flip.example": [[PUBLIC_IP], ["::1"]]}
    )
    assert "private or reserved address" in await refusal(web, "http://flip.example/")
    assert (web.connected, web.urls) == ([(PUBLIC_IP, 80)], ["http://flip.example/"])


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["10.1.2.3"],
        ["169.254.169.254"],
        ["192.0.0.192"],
        ["::1"],
        ["fd00:ec2::254"],
        ["::ffff:10.0.0.1"],
        ["64:ff9b::a9fe:a9fe"],
        [PUBLIC_IP, "127.0.0.1"],
        ["2606:4700:4700::1111", "fe80::1"],
    ],
    ids=" ".join,
)
async def test_a_name_with_any_private_address_is_not_connected(serve: Any, addresses: list[str]) -> None:
    web = serve({"site.example": {"/": HELLO}}, {"site.example": [addresses]})
    assert "private or reserved address" in await refusal(web, "http://site.example/")
    assert (web.connected, web.requests) == ([], [])


async def test_names_are_looked_up_as_this_machine_does() -> None:
    found = await PublicNetwork().resolve("localhost")
    assert found and all(address.is_loopback for address in found)


async def test_a_name_without_address_is_told_as_not_found(serve: Any) -> None:
    web = serve({}, {"nowhere.example": [[]]})
    assert "'nowhere.example' was not found" in await refusal(web, "http://nowhere.example/")


async def test_an_address_is_checked_again_where_it_is_connected(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def blind(*_: Any) -> list[Any]:
        return [ip_address("127.0.0.1")]

    web = serve({"site.example": {"/": HELLO}})
    monkeypatch.setattr("graphrag_agent.tools._web_client.checked_addresses", blind)
    assert "SSRFProtectionError" in await refusal(web, "http://site.example/")
    assert web.connected == []


async def test_the_next_address_is_tried_where_one_is_dead(serve: Any) -> None:
    web = serve({"site.example": {"/": HELLO}}, {"site.example": [["2606:4700::1", PUBLIC_IP]]})
    web.dead_addresses = {"2606:4700::1"}
    assert (await get(web.network, "http://site.example/")).data == b"<p>Hello"
    web.dead_addresses.add(PUBLIC_IP)
    assert "can't be connected (ConnectError)" in await refusal(web, "http://site.example/")


def certificate_for(host: str, folder: Path) -> Path:
    """A file with a key and a certificate of its own making."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file = folder / "site.pem"
    file.write_bytes(secret + certificate.public_bytes(Encoding.PEM))
    return file


async def test_a_certificate_must_be_the_names_though_the_address_is_connected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = certificate_for("site.example", tmp_path)
    monkeypatch.setattr("graphrag_agent.tools._web_client._load", lambda: ssl.create_default_context(cafile=file))
    web = FakeWeb({"site.example": {"/": HELLO}, "other.example": {"/": HELLO}})
    web.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    web.tls.load_cert_chain(file)
    with web, web.wired(monkeypatch):
        assert (await get(web.network, "https://site.example/")).data == b"<p>Hello"
        assert "can't be connected (ConnectError)" in await refusal(web, "https://other.example/")
    assert web.connected == [(PUBLIC_IP, 443)] * 2
    assert len(web.requests) == 1


@pytest.mark.skipif(not SSRF.is_file(), reason="../shared/data is not laid here")
async def test_no_recorded_attack_leads_to_a_connection_inside(serve: Any) -> None:
    rows = [json.loads(line) for line in SSRF.read_text().splitlines()]
    names = {
        "169.254.169.254.nip.io": [["169.254.169.254"]],
        "metadata.tencentyun.com": [["169.254.0.23"]],
        "62epax5fhvj3zzmzigyoe5ipkbn7fysllvges3a.302.r3dir.me": [["127.0.0.1"]],
    }
    web = serve({}, {**names, "ssrf.localdomain.pw": [[PUBLIC_IP]]})
    sent = {row["url"].partition("ssrf.localdomain.pw")[2]: redirect(METADATA, 301) for row in rows}
    web.sites["ssrf.localdomain.pw"] = sent
    for row in rows:
        url = row["url"].replace("https://ssrf", "http://ssrf")
        assert "refused" in (told := await refusal(web, url)) or "private or reserved address" in told
    assert {ip for ip, _ in web.connected} == {PUBLIC_IP}
    assert {url.partition("/")[2].split("/")[1] for url in web.urls} == {"ssrf.localdomain.pw"}


async def test_a_listener_on_this_machine_sees_nothing() -> None:
    """Nothing is patched here: the production network, but for the port of the listener and the name server."""
    seen: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def accept() -> None:
            while True:
                try:
                    seen.append(listener.accept())
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()

        class NamesOfThisMachine(StubNetwork):
            def __init__(self) -> None:
                super().__init__({"inside.example": [["127.0.0.1"]], "mapped.example": [["::ffff:127.0.0.1"]]})
                self.ports = frozenset({port})

        hosts = ["127.0.0.1", "localhost", "127.1", "0x7f.1", "2130706433", "0177.0.0.1", "0", "[::ffff:127.0.0.1]"]
        hosts += [
            "[::1]",
            "[64:ff9b::7f00:1]",
            "inside.example",
            "mapped.example",
            "127.0.0.1.",
            "a@127.0.0.1",
            "①27.0.0.1",
        ]
        for host in hosts:
            for scheme in ("http", "https"):
                with pytest.raises(ToolError):
                    await get(NamesOfThisMachine(), f"{scheme}://{host}:{port}/")
        with pytest.raises(ToolError):
            await get(PublicNetwork(ports=frozenset({port})), f"http://localhost.localdomain:{port}/")
        await asyncio.sleep(0.05)
        listener.shutdown(socket.SHUT_RDWR)
    assert seen == []


@pytest.mark.parametrize(
    "location",
    [
        *(
            METADATA,
            "http://127.0.0.1/",
            "//127.0.0.1/",
            "http://127.1/",
            "http://[::1]/",
            "http://localhost/",
            "file:///etc/passwd",
        ),
        *(
            "http://site.example:22/",
            "http://site.example@127.0.0.1/",
            "http:\\\\127.0.0.1/",
            "gopher://127.0.0.1/",
            "http://①②⑦.0.0.1",
        ),
    ],
)
@pytest.mark.parametrize("status", [301, 307])
async def test_a_redirect_inside_is_refused_and_the_refusal_says_so(serve: Any, location: str, status: int) -> None:
    web = serve({"site.example": {"/": redirect(location, status)}})
    told = await refusal(web, "http://site.example/")
    assert told.startswith("http://site.example/ redirects elsewhere; url=")
    assert (web.connected, len(web.requests)) == ([(PUBLIC_IP, 80)], 1)


async def test_redirects_are_followed_to_other_public_sites(serve: Any) -> None:
    web = serve({"a.example": {"/": redirect("//b.example/x#y", 308)}, "b.example": {"/x": HELLO}})
    found = await get(web.network, "http://a.example/")
    assert (found.address.url, found.data) == ("http://b.example/x", b"<p>Hello")


async def test_redirects_end(serve: Any) -> None:
    circle = {"/a": redirect("/b"), "/b": redirect("/a"), "/self": redirect("/self#x")}
    chain = {f"/{n}": redirect(f"/{n + 1}") for n in range(1, 20)}
    web = serve({"site.example": {**circle, **chain, "/19": HELLO}})
    assert "redirects in a circle" in await refusal(web, "http://site.example/a")
    assert "redirects in a circle" in await refusal(web, "http://site.example/self")
    web.requests.clear()
    assert f"more than {MAX_REDIRECTS} redirects" in await refusal(web, "http://site.example/1")
    assert len(web.requests) == MAX_REDIRECTS + 1
    assert (await get(web.network, f"http://site.example/{19 - MAX_REDIRECTS}")).data == b"<p>Hello"


async def test_an_endless_body_is_left_at_the_limit(serve: Any) -> None:
    def endless() -> Iterable[bytes]:
        while True:
            yield b"x" * 65536

    big = Answer(endless, headers={"content-type": "text/plain", "content-length": str(10**10)})
    web = serve({"site.example": {"/endless": Answer(endless), "/big": big}})
    for path in ("/endless", "/big"):
        web.sent_bytes = 0
        found = await get(web.network, f"http://site.example{path}")
        assert (len(found.data), found.is_cut) == (100_000, True)
        assert web.sent_bytes < 20_000_000, "what the sockets between us hold"


async def test_a_compressed_bomb_is_opened_no_further_than_the_limit(serve: Any) -> None:
    bomb = gzip.compress(b"a" * 200_000_000, 9)
    web = serve({"site.example": {"/": page(bomb, content_encoding="gzip")}})
    tracemalloc.start()
    found = await get(web.network, "http://site.example/")
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(found.data), found.is_cut, set(found.data)) == (100_000, True, {ord("a")})
    assert most_bytes < 10_000_000


async def test_much_that_opens_to_nothing_ends_too(serve: Any) -> None:
    def nothing() -> Iterable[bytes]:
        while True:
            yield gzip.compress(b"") * 1000

    web = serve({"site.example": {"/": Answer(nothing, headers={"content-encoding": "gzip"})}})
    found = await get(web.network, "http://site.example/")
    assert (found.data, found.is_cut) == (b"", True)


@pytest.mark.parametrize("size", [99_999, 100_000, 100_001])
@pytest.mark.parametrize("coding", ["gzip", "identity"])
async def test_a_body_is_whole_up_to_the_limit(serve: Any, size: int, coding: str) -> None:
    text = b"0123456789" * (size // 10) + b"x" * (size % 10)
    body = gzip.compress(text[:50_000]) + gzip.compress(text[50_000:]) if coding == "gzip" else text
    web = serve({"site.example": {"/": page(body, content_encoding=coding)}})
    found = await get(web.network, "http://site.example/")
    assert (found.data, found.is_cut) == (text[:100_000], size > 100_000)


@pytest.mark.parametrize("padding", [b"\0" * 512, b"\r\n", b"<!-- served -->"])
async def test_what_stands_behind_a_whole_gzip_file_costs_no_page(serve: Any, padding: bytes) -> None:
    web = serve({"site.example": {"/": page(gzip.compress(b"Hello") + padding, content_encoding="gzip")}})
    found = await get(web.network, "http://site.example/")
    assert (found.data, found.is_cut) == (b"Hello", False)


async def test_damage_in_a_later_part_of_a_gzip_file_is_told(serve: Any) -> None:
    later = bytearray(gzip.compress(bytes(range(256)) * 8))
    later[-6] ^= 255  # in its checksum
    web = serve({"site.example": {"/": page(gzip.compress(b"Hello") + later, content_encoding="gzip")}})
    assert "gzip data is damaged" in await refusal(web, "http://site.example/")


@pytest.mark.parametrize("coding", ["br", "gzip, gzip", "zstd", "deflate"])
async def test_codings_that_nobody_asked_for_are_refused(serve: Any, coding: str) -> None:
    web = serve({"site.example": {"/": page(zlib.compress(b"x"), content_encoding=coding)}})
    assert "which was not asked for" in await refusal(web, "http://site.example/")


async def test_a_broken_answer_is_told_and_may_be_tried_again(serve: Any) -> None:
    short = Answer(lambda: [b"half"], headers={"content-length": "8"})
    web = serve({"site.example": {"/short": short, "/gzip": page(b"no gzip", content_encoding="gzip")}})
    with pytest.raises(ToolFailedError, match="gave no whole answer") as raised:
        await get(web.network, "http://site.example/short")
    assert raised.value.retryable
    assert "gzip data is damaged" in await refusal(web, "http://site.example/gzip")


def test_the_rules_of_robots_txt_are_read_as_its_standard_says() -> None:
    rules = parse_robots(
        """# hello
        User-agent: *
        Disallow: /

        user-agent: graphrag-agent
        User-Agent: other
        Disallow: /private
        Allow: /private/open
        Disallow: /*.php$
        Disallow: /*/draft*final
        Disallow:
        Sitemap: http://site.example/x
        """
    )
    allowed = ["/", "/privat", "/private/open/x", "/a.php?x", "/a/draft/x", "/x.phpp"]
    forbidden = ["/private", "/private/x", "/a.php", "/b/a.php", "/a/draft/1/final?x"]
    assert [rules.allow(target) for target in allowed] == [True] * len(allowed)
    assert [rules.allow(target) for target in forbidden] == [False] * len(forbidden)


def test_other_programs_rules_do_not_count_and_all_are_meant_by_a_star() -> None:
    assert parse_robots("User-agent: Googlebot\nDisallow: /").allow("/x")
    assert not parse_robots("User-agent: Googlebot\nUser-agent: *\nDisallow: /").allow("/x")
    assert parse_robots("").allow("/x")
    assert parse_robots("Disallow: /\n\0\xff: :\nUser-agent").allow("/x")


def test_many_agents_in_one_group_are_read_at_once() -> None:
    text = "".join(f"User-agent: a{number}\n" for number in range(35_000)) + "User-agent: *\nDisallow: /x"
    began = time.process_time()
    rules = parse_robots(text)
    assert time.process_time() - began < 0.5
    assert not rules.allow("/x") and rules.allow("/y")


def test_a_group_for_us_without_rules_stands_before_that_for_all() -> None:
    assert parse_robots("User-agent: graphrag-agent\nDisallow:\n\nUser-agent: *\nDisallow: /").allow("/x")


@pytest.mark.parametrize(
    ("pattern", "target", "is_allowed"),
    [
        ("/café", "/caf%C3%A9", False),
        ("/caf%c3%a9", "/caf%C3%A9", False),
        ("/%7Eme", "/~me", False),
        ("/~me", "/%7eme", False),
        ("/a b", "/a%20b", False),
        ("/a/b", "/a%2Fb", True),
        ("/100%", "/100%", False),
        ("/é$", "/%C3%A9t%C3%A9", True),
    ],
)
def test_a_pattern_and_a_path_are_compared_as_encoded(pattern: str, target: str, is_allowed: bool) -> None:
    assert parse_robots(f"User-agent: *\nDisallow: {pattern}").allow(target) is is_allowed


@given(st.text("ab*$/", max_size=8), st.text("ab/$", max_size=8))
def test_a_pattern_fits_as_its_regular_expression_does(pattern: str, path: str) -> None:
    body, end = (pattern[:-1], "$") if pattern.endswith("$") else (pattern, "")
    expression = ".*".join(re.escape(piece) for piece in body.split("*")) + end
    assert parse_robots(f"User-agent: *\nDisallow: {pattern}").allow(path) == (
        not pattern or not re.match(expression, path)
    )


def test_a_pattern_of_many_stars_is_quick() -> None:
    rules = parse_robots("User-agent: *\nDisallow: /" + "*a" * 240 + "b$")
    began = time.process_time()
    assert rules.allow("/" + "a" * 1900)
    assert time.process_time() - began < 0.1


@pytest.mark.parametrize(
    ("robots", "is_allowed"),
    [
        (page("User-agent: *\nDisallow: /secret", "text/plain"), False),
        (page("\ufeffUser-agent: *\nDisallow: /secret", "text/plain"), False),
        (page("User-agent: *\nDisallow: /other", "text/plain"), True),
        (Answer(status=404), True),
        (Answer(status=403), True),
        (Answer(status=500), False),
        (Answer(status=429), False),
        (redirect("http://127.0.0.1/robots.txt"), False),
        (redirect("/elsewhere"), False),
    ],
)
async def test_a_site_that_forbids_a_page_or_cannot_be_asked_is_let_alone(
    serve: Any, robots: Answer, is_allowed: bool
) -> None:
    elsewhere = page("User-agent: *\nDisallow: /secret", "text/plain")
    web = serve({"site.example": {"/robots.txt": robots, "/elsewhere": elsewhere}})
    client = WebClient(web.network)
    cache = RobotsCache(client)
    checking = [cache.check(client.check("http://site.example/secret")) for _ in range(3)]
    results = [type(item) for item in await asyncio.gather(*checking, return_exceptions=True)]
    assert results == [type(None) if is_allowed else ToolFailedError] * 3
    assert {ip for ip, _ in web.connected} == {PUBLIC_IP}


async def test_a_site_that_is_down_is_asked_again(serve: Any) -> None:
    web = serve({"site.example": {"/robots.txt": Answer(status=503)}})
    client = WebClient(web.network)
    cache, address = RobotsCache(client), client.check("http://site.example/")
    with pytest.raises(ToolFailedError, match="answered with status 503 when asked for its robots") as raised:
        await cache.check(address)
    assert raised.value.retryable
    web.sites["site.example"]["/robots.txt"] = Answer(status=404)
    await cache.check(address)
    await cache.check(address)
    assert len(web.requests) == 2


async def test_rules_are_kept_for_an_hour_and_for_a_bounded_number_of_sites(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphrag_agent.tools._robots.KEPT_SITES", 2)
    hour = [0.0]
    web = serve({f"{name}.example": {} for name in "abc"})
    client = WebClient(web.network)
    cache = RobotsCache(client, now=lambda: hour[0] * 3600)
    for name, at in [("a", 0.0), ("a", 0.9), ("a", 1.1), ("b", 1.1), ("c", 1.1), ("b", 1.2), ("a", 1.2)]:
        hour[0] = at
        await cache.check(client.check(f"http://{name}.example/"))
    asked = [url.removeprefix("http://")[0] for url, _ in web.requests]
    assert asked == ["a", "a", "b", "c", "a"], "a again after an hour, and after two others"
