"""QR codes as images that a page carries in itself; black on white in dark mode, too, or phones cannot read them."""

from __future__ import annotations

from functools import lru_cache

import segno
from markupsafe import Markup


@lru_cache(maxsize=1024)
def qr_data_uri(address: str) -> str:
    """For an `img`."""
    return segno.make(address, error="m").svg_data_uri(scale=8, border=3, dark="#000", light="#fff")


@lru_cache(maxsize=1024)
def qr_svg(address: str) -> Markup:
    """For the page itself, as wide as its frame."""
    made = segno.make(address, error="m")
    return Markup(
        made.svg_inline(border=2, dark="#000", light="#fff", omitsize=True, title="QR code of the address")
    )
