"""ZIP files as attackers make them, built byte by byte where honest tools would refuse."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping

SCRIPT = b"print('hello')\n"


def packed(files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An ordinary archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def with_mode(name: str, content: bytes, mode: int) -> bytes:
    """`train.py`, and one entry whose mode says link, device or FIFO."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("train.py", SCRIPT)
        info = zipfile.ZipInfo(name)
        info.create_system = 3
        info.external_attr = mode << 16
        archive.writestr(info, content)
    return out.getvalue()


def encrypted() -> bytes:
    """An archive whose entry says that it is encrypted, in both of its headers."""
    data = bytearray(packed({"train.py": SCRIPT}))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def bomb(name: str = "train.py", size: int = 64 << 20) -> bytes:
    """A few kilobytes that unpack to `size` bytes, and say so."""
    return packed({name: b"#" * size})


def lying_bomb(size: int = 64 << 20) -> bytes:
    """The same, said to be small in both headers."""
    data = bytearray(bomb(size=size))
    for signature, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<L", data, data.index(signature) + at, 1000)
    return bytes(data)


def overlapping(count: int = 60) -> bytes:
    """Many entries that share one body: a quine-like bomb (as D. Fifield's of 2019)."""
    body = zlib.compressobj(9, zlib.DEFLATED, -15)
    content = b"#" * (1 << 20)
    squeezed = body.compress(content) + body.flush()
    crc = zlib.crc32(content)
    name = b"m00.py"
    local = struct.pack(
        "<4sHHHHHLLLHH", b"PK\x03\x04", 20, 0, 8, 0, 33, crc, len(squeezed), len(content), len(name), 0
    )
    data = local + name + squeezed
    directory = b""
    for number in range(count):
        entry = b"train.py" if number == 0 else b"m%02d.py" % number
        directory += (
            struct.pack(
                "<4sHHHHHHLLLHHHHHLL",
                b"PK\x01\x02",
                20,
                20,
                0,
                8,
                0,
                33,
                crc,
                len(squeezed),
                len(content),
                len(entry),
                0,
                0,
                0,
                0,
                0,
                0,
            )
            + entry
        )
    end = struct.pack("<4sHHHHLLH", b"PK\x05\x06", 0, 0, count, count, len(directory), len(data), 0)
    return data + directory + end


def crowded(count: int = 60_000) -> bytes:
    """A directory of very many empty entries."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for number in range(count):
            archive.writestr(zipfile.ZipInfo(f"{number}.py"), b"")
    return out.getvalue()


def renamed(name: str) -> bytes:
    """An archive with `train.py` and an entry of this very name, whatever tools would make of it."""
    placeholder = "n" * len(name.encode())
    data = packed({"train.py": SCRIPT, placeholder: SCRIPT})
    return data.replace(placeholder.encode(), name.encode())
