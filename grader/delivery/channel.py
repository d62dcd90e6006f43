"""Channels: ways out, each a module of `channels/`, and what every one of them is given."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from grader.plugins.loader import load
from grader.plugins.shape import Complaint, Constant, Function, Shape, of_type
from grader.plugins.sources import Sources
from grader.settings.schema import Settings
from grader.store.database import Store
from grader.store.delivery.deliveries import Delivery


@dataclass
class DeliveryContext:
    """What a channel works with, one of each thread.

    Attributes:
        secret: what links in mails are signed with.
    """

    store: Store
    settings: Settings
    secret: str
    _kept: dict[str, Any] = field(default_factory=dict)

    def keep(self, name: str, make: Callable[[], Any]) -> Any:
        """Something with a `close`, such as a connection, made where there is none; closed when nothing waits."""
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]

    def drop(self) -> None:
        """Close all that is kept."""
        while self._kept:
            with contextlib.suppress(Exception):
                self._kept.popitem()[1].close()


@dataclass(frozen=True, slots=True)
class Channel:
    """A way out.

    Attributes:
        deliver: brings one delivery out and returns what the other side said; raises what `failures` holds.
        missing: which settings this site lacks for it, as a sentence; "": none.
        threads: how many deliveries it has under way at a time.
        regularly: what it does every minute besides, such as to queue what is told at a set hour; None: nothing.
    """

    name: str
    deliver: Callable[[DeliveryContext, Delivery], str]
    missing: Callable[[Settings], str]
    threads: int = 1
    regularly: Callable[[DeliveryContext], None] | None = None


@cache
def find_channels() -> tuple[Channel, ...]:
    """All channels there are.

    Raises:
        InfraError: a module does not have their shape.
    """
    return tuple(
        Channel(
            plugin.name,
            plugin.get("deliver"),
            plugin.get("missing", _nothing),
            plugin.get("THREADS", 1),
            plugin.get("regularly"),
        )
        for plugin in load(Sources("grader.delivery.channels"), SHAPE)
    )


def _nothing(_settings: Settings) -> str:
    return ""


def _few(value: object) -> Iterator[Complaint]:
    yield from of_type(int, "a whole number")(value)
    if isinstance(value, int) and not 1 <= value <= 8:
        yield Complaint("must be 1 to 8")


SHAPE = Shape(
    what="a channel",
    constants=(Constant("THREADS", "THREADS = 1", _few, required=False),),
    functions=(
        Function("deliver", {"context": "DeliveryContext", "delivery": "Delivery"}, ("str",)),
        Function("missing", {"settings": "Settings"}, ("str",), required=False),
        Function("regularly", {"context": "DeliveryContext"}, ("None",), required=False),
    ),
    file_example="mail.py",
    closed=False,
)
