"""What a rank writes is a sign of life, except what torch says again and again while it looks for a store."""

from __future__ import annotations

import os

import pytest

from grader.launch.ranks.streams import Capture, open_pipe

RETRYING = (
    b"[W1121 16:47:28.244515734 TCPStore.cpp:340] [c10d] TCP client failed to connect/validate to host localhost:12355 "
    b"- retrying (try=1, timeout=1800000ms, delay=9852ms): Interrupted system call\n"
    b"Exception raised from delay at torch/csrc/distributed/c10d/socket.cpp:113 (most recent call first):\n"
    b"frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x9d (0x7f75 in libc10.so)\n"
    b"<omitting python frames>\n"
    b"frame #46: _start + 0x21 (0x5644 in python)\n\n"
)
REFUSED = (
    b"[W socket.cpp:697] [c10d] The client socket has failed to connect to [localhost]:12355 (errno: 111).\n"
)


@pytest.mark.parametrize(
    ("written", "alive"),
    [
        (RETRYING, False),
        (RETRYING + REFUSED, False),
        (RETRYING + b"epoch 1\n", True),
        (b"loading\n" + REFUSED, True),
        (b"[c10d] is what I call my model\n", True),
        (b"\n", True),
        # An expression that goes back and forth takes minutes for it, in which no deadline holds.
        (b"[E" + b"[c10d]" * 10_000, True),
    ],
)
def test_signs_of_life(written: bytes, alive: bool) -> None:
    reader, writer = open_pipe()
    capture = Capture(reader, 1 << 20)
    try:
        os.write(writer, written)
        assert capture.drain() is alive
        # Kept and shown all the same.
        assert capture.text().encode() == written
        assert capture.num_bytes == len(written)
    finally:
        os.close(writer)
        capture.close()
