"""What people are told while a run goes on: the newest loss, also one that a device had only some steps later."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from grader.launch.progress import progress_event

STEP = '{"s":"4:0123456789abcdef","e":"step","t":2.5,"n":9,"lr":[0.1],"loss":%s,"backwards":1%s}\n'
LATER = ',"later":{"n":[1,2],"loss":[0.75,0.5],"device_s":[0.01,0.01]}'


def told(recent: str) -> Any:
    stream = SimpleNamespace(fresh_text=lambda _most: "", last_line=lambda: "")
    trace = SimpleNamespace(num_steps=10, recent=recent.encode())
    rank: Any = SimpleNamespace(rank=0, out=stream, err=stream, trace=trace)
    return progress_event([rank], 3.0)["loss"]


@pytest.mark.parametrize(
    ("recent", "loss"),
    [
        (STEP % (1.25, ""), 1.25),
        (STEP % ("null", LATER), 0.75),
        (STEP % (2.0, "") + STEP % (1.5, ""), 1.5),
        (STEP % ("null", LATER) + STEP % ("null", ""), 0.75),
        (STEP % ("null", ""), None),
    ],
)
def test_the_newest_loss_is_told(recent: str, loss: float | None) -> None:
    assert told(recent) == loss
