"""Ranks that are kept from before the group was joined, and honest fallbacks for a lone process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.checks.source.ranks.early_ranks import asked_of_launcher, early_ranks
from grader.checks.source.script import Script

HEAD = """\
import torch.distributed as dist

def my_rank():
    if not dist.is_available() or not dist.is_initialized():
        return 0
    return dist.get_rank()

class Trainer:
    def __init__(self):
        self.rank = my_rank()
        self.size = dist.get_world_size() if dist.is_initialized() else 1

    def fit(self):
        if self.rank == 0:
            print(self.size)

"""


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("def main():\n    t = Trainer()\n    dist.init_process_group()\n    t.fit()\n\nmain()\n", [10, 11]),
        ("RANK = my_rank()\ndef main():\n    dist.init_process_group()\n    print(RANK)\n\nmain()\n", [17]),
        (
            "r = 0\nif dist.is_initialized():\n    r = dist.get_rank()\ndist.init_process_group()\nprint(r)\n",
            [18],
        ),
        ("rank = my_rank()\ndef join():\n    dist.init_process_group()\n\njoin()\nprint(rank)\n", [17]),
    ],
)
def test_kept_from_above_the_group(script: Callable[..., Script], text: str, lines: list[int]) -> None:
    found = early_ranks(script(HEAD + text))
    assert [one.node.lineno for one in found] == lines  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "def main():\n    dist.init_process_group()\n    Trainer().fit()\n\nmain()\n",
        "print(my_rank())\ndist.init_process_group()\nprint(my_rank())\n",
        "rank = my_rank()\nprint(rank)\ndist.init_process_group()\nrank = my_rank()\nprint(rank)\n",
        "def join():\n    dist.init_process_group()\n\njoin()\nrank = my_rank()\nprint(rank)\n",
        "for again in range(2):\n    rank = my_rank()\n    dist.init_process_group()\n    print(rank)\n",
        "rank = my_rank()\nprint(rank)\n",
    ],
)
def test_asked_anew_or_inside_the_group(script: Callable[..., Script], text: str) -> None:
    assert early_ranks(script(HEAD + text)) == []


def test_the_launcher_is_asked_instead(script: Callable[..., Script]) -> None:
    made = script(HEAD + "t = Trainer()\ndist.init_process_group()\nt.fit()\n")
    fix = asked_of_launcher(made, early_ranks(made))
    assert fix is not None
    assert [e.text for e in fix.edits if e.line > 2] == [
        'int(os.environ["RANK"])',
        'int(os.environ["WORLD_SIZE"])',
    ]
