"""Where web requests may go: names looked up here, and only addresses that were checked are connected."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Protocol

from graphrag_agent.errors import ToolFailedError
from graphrag_agent.tools._url_guard import WEB_PORTS, IPAddress, WebAddress, is_public


class Network(Protocol):
    """What a fetch may reach."""

    @property
    def ports(self) -> frozenset[int]:
        """Ports that a URL may name."""
        ...

    def admits(self, address: IPAddress) -> bool:
        """Whether this address may be connected."""
        ...

    async def resolve(self, host: str) -> Sequence[IPAddress]:
        """All addresses of the name, best first; none where it has none. Raises OSError where it can't be asked."""
        ...


@dataclass(frozen=True, slots=True)
class PublicNetwork:
    """The public internet, through the name servers of this machine."""

    ports: frozenset[int] = WEB_PORTS

    def admits(self, address: IPAddress) -> bool:
        return is_public(address)

    async def resolve(self, host: str) -> Sequence[IPAddress]:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return [ip_address(str(sockaddr[0]).partition("%")[0]) for *_, sockaddr in found]


async def checked_addresses(network: Network, address: WebAddress) -> Sequence[IPAddress]:
    """The addresses to connect for this URL, each one admitted.

    One that is not admitted spoils the whole answer: an honest name has no private address beside its public ones.
    Raises ToolFailedError.
    """
    if address.literal is not None:
        found: Sequence[IPAddress] = [address.literal]
    else:
        try:
            found = await network.resolve(address.host)
        except (OSError, UnicodeError):
            found = ()
    if not found:
        raise ToolFailedError(f"the host {address.host!r} was not found; check its spelling or use another page")
    if not all(network.admits(item) for item in found):
        raise ToolFailedError(
            f"the host {address.host!r} leads to a private or reserved address; only public hosts can be fetched"
        )
    return found
