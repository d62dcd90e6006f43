"""Names of folders in archives: the same on every system, and nobody else's."""

from __future__ import annotations

import re

_ODD = re.compile(r"[^A-Za-z0-9._@+-]+")
_MOST = 80


def plain_name(text: str) -> str:
    """The text as the name of a file or folder; `learner` where nothing of it can be one."""
    return _ODD.sub("_", text).strip("._")[:_MOST] or "learner"


def own_folder(called: str, person_id: int, taken: set[str]) -> str:
    """A folder's name for somebody who is called that, added to those that are `taken`."""
    name = plain_name(called)
    if name.casefold() in taken:
        name = f"{name}_{person_id}"
    taken.add(name.casefold())
    return name
