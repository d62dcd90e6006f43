"""QR codes as images that a page carries in itself; black on white in dark mode, too, or phones cannot read them."""

from __future__ import annotations

from functools import lru_cache

import segno
from markupsafe import Markup

from grader.translation import gettext


@lru_cache(maxsize=1024)
def qr_data_uri(address: str) -> str:
    """For an `img`."""
    return segno.make(address, error="m").svg_data_uri(scale=8, border=3, dark="#000", light="#fff")


def qr_svg(address: str) -> Markup:
    """For the page itself, as wide as its frame."""
    return _titled_svg(address, gettext("QR code of the address"))


@lru_cache(maxsize=1024)
def _titled_svg(address: str, title: str) -> Markup:
    made = segno.make(address, error="m")
    return Markup(made.svg_inline(border=2, dark="#000", light="#fff", omitsize=True, title=title))
