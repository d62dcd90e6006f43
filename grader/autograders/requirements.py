"""What a copy of this grader needs beside it to judge: its own requirements, pinned to what is installed here."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires, version

_NAMED = re.compile(r"([A-Za-z0-9._-]+)(\[[^\]]*\])?")


def pinned(extra: str) -> str:
    """The text of a requirements file for the package and one of its extras.

    What is not installed here stays as loose as the package asks for it.
    """
    lines = []
    for requirement in requires("ddp-grader") or ():
        wanted, _, marker = requirement.partition(";")
        if "extra" in marker and f'"{extra}"' not in marker.replace("'", '"'):
            continue
        if (named := _NAMED.match(wanted)) is None:
            continue
        try:
            # A local version (2.9.1+cu128) is one of many builds, and no index of all packages has it.
            lines.append(f"{named[0]}=={version(named[1]).partition('+')[0]}")
        except PackageNotFoundError:
            lines.append(wanted.strip())
    return "\n".join(sorted(lines)) + "\n"
