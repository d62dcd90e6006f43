"""A barrier that is only named: where parentheses make it right, and where they would let some ranks wait for ever."""

from __future__ import annotations

import pytest

from grader.checks.rules.io003_download_race import check_source as downloads
from grader.checks.rules.io008_load_before_save import check_source as loads
from grader.checks.source.calls.uncalled_methods import meeting, uncalled
from grader.checks.source.collectives.unmet_collectives import unmet_collectives
from grader.checks.source.script import Script, parse
from grader.model.submission import SourceFile, Submission

HEAD = """import torch
import torch.distributed as dist
from torchvision.datasets import FashionMNIST
dist.init_process_group("gloo")
rank = dist.get_rank()
"""


def script_of(text: str) -> Script:
    return parse(Submission("test", (SourceFile("train.py", HEAD + text),)))


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        pytest.param("dist.barrier", (False,), id="every rank comes by"),
        pytest.param("if rank == 0:\n    dist.barrier", (True,), id="rank 0 alone"),
        pytest.param(
            "if rank != 0:\n    dist.barrier\nload()\nif rank == 0:\n    dist.barrier",
            (False, False),
            id="first the one, then the others",
        ),
        pytest.param(
            "if rank == 0:\n    dist.barrier\nelse:\n    dist.barrier()", (False,), id="in both branches"
        ),
        pytest.param(
            "if rank == 0:\n    dist.barrier\ndist.barrier()\nif rank != 0:\n    dist.barrier",
            (True, True),
            id="another one of all between them",
        ),
    ],
)
def test_what_is_told_of_a_barrier_that_is_only_named(text: str, moved: tuple[bool, ...]) -> None:
    script = script_of(text)
    hints = [meeting(script, named) for named in uncalled(script, "barrier")]
    assert tuple("Move it out" in hint for hint in hints) == moved
    assert all("dist.barrier()" in hint for hint in hints)


def test_a_name_is_no_collective() -> None:
    script = script_of("if rank == 0:\n    dist.barrier\n    dist.all_reduce\ndist.broadcast")
    assert [name for name in script.collectives.direct.values() if name != "init_process_group"] == []
    assert unmet_collectives(script) == []


def test_it_lets_nobody_wait_for_a_download_or_a_file() -> None:
    text = 'if rank == 0:\n    FashionMNIST("d", download=True)\ndist.barrier\nFashionMNIST("d")\n'
    (hit,) = downloads(script_of(text))
    assert "Write `dist.barrier()` at `train.py:8`" in hit.hint
    text = 'if rank == 0:\n    torch.save(1, "a.pt")\n    dist.barrier\ntorch.load("a.pt")\n'
    (hit,) = loads(script_of(text))
    assert "Move it out of `rank == 0` at `train.py:6`" in hit.hint
    assert hit.fix is None
