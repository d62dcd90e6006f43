"""The way to a receiver that somebody named: to public addresses alone, and never for longer than a deadline.

Names are resolved where the connection is made, and what was looked at is what is connected to: a name that leads
elsewhere the second time leads nowhere.
"""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Iterable

import httpcore

from grader.delivery.failures import DeliveryRefusedError

WITHIN_S = 15.0
"""How long a receiver may take for all: its name, the connection, the answer."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class PublicNetwork(httpcore.SyncBackend):
    """Connects to public addresses; `private`: to any. All that it does together takes `WITHIN_S` at most."""

    def __init__(self, *, private: bool) -> None:
        self._private = private
        self._deadline = time.monotonic() + WITHIN_S

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """A connection to the first address of the host that answers.

        Raises:
            DeliveryRefusedError: it has one that is not public.
        """
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"there is no host {host}") from error
        addresses = [str(one[4][0]) for one in found]
        if not self._private and not all(is_public(one) for one in addresses):
            raise DeliveryRefusedError(
                f"{host} is in a private network, which webhooks reach only where GRADER_WEBHOOK_PRIVATE says so"
            )
        for number, address in enumerate(addresses, 1):
            try:
                stream = super().connect_tcp(address, port, self.left(timeout), local_address, socket_options)
                return _LimitedStream(stream, self)
            except httpcore.ConnectError:
                if number == len(addresses):
                    raise
        raise httpcore.ConnectError(f"{host} has no address")

    def left(self, timeout: float | None) -> float:
        """How long an operation may take.

        Raises:
            TimeoutException: none may begin any more.
        """
        rest = self._deadline - time.monotonic()
        if rest <= 0:
            raise httpcore.ReadTimeout("no answer in time")
        return rest if timeout is None else min(rest, timeout)


class _LimitedStream(httpcore.NetworkStream):
    """A connection whose operations share one deadline: an answer that drips ends, too."""

    def __init__(self, stream: httpcore.NetworkStream, network: PublicNetwork) -> None:
        self._stream = stream
        self._network = network

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._network.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._network.left(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: object, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        limit = self._network.left(timeout)
        made = self._stream.start_tls(ssl_context, server_hostname, limit)  # type: ignore[arg-type]
        return _LimitedStream(made, self._network)

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)


def is_public(text: str) -> bool:
    """Whether an address belongs to the public internet, however it is written."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            address = inner
    return address.is_global and not address.is_multicast
