"""Where ranks of several nodes meet: the one interface beside loopback that a container was given, and its address."""

from __future__ import annotations

import fcntl
import socket
import struct

LOOPBACK = ("lo", "127.0.0.1")
_SIOCGIFADDR = 0x8915
_NAME_BYTES = 16


def meeting_place() -> tuple[str, str]:
    """Name and IPv4 address of the first interface beside loopback that has one; loopback's where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as asking:
        for _number, name in socket.if_nameindex():
            request = struct.pack(f"{_NAME_BYTES}s24x", name.encode()[: _NAME_BYTES - 1])
            try:
                answer = fcntl.ioctl(asking, _SIOCGIFADDR, request)
            except OSError:
                # It has no address: nobody meets there.
                continue
            # After the name: a sockaddr_in, that is family, port, address.
            address = socket.inet_ntoa(answer[_NAME_BYTES + 4 : _NAME_BYTES + 8])
            if name != LOOPBACK[0]:
                return name, address
    return LOOPBACK
