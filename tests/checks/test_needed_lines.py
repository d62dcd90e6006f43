"""Advice is code to paste: what it needs and the script lacks stands with it, and nothing that is there already."""

from __future__ import annotations

import ast
import re

import pytest

from grader.checks.lint import lint
from grader.checks.needed_lines import import_of, with_needed_lines
from grader.checks.source.script import Script, parse
from grader.model.submission import ENTRY_POINT, SourceFile, Submission

WRAP = "Wrap it, `model = DistributedDataParallel(model)`, and train through it."
IMPORT = "from torch.nn.parallel import DistributedDataParallel"


def script(text: str) -> Script:
    return parse(submission(text))


def submission(text: str) -> Submission:
    return Submission("mine", (SourceFile(ENTRY_POINT, text),))


def test_an_import_that_is_missing_stands_with_the_advice() -> None:
    assert (
        with_needed_lines(WRAP, script("import torch\n")) == f"{WRAP} Above it your script needs `{IMPORT}`."
    )


@pytest.mark.parametrize(
    "there", [IMPORT, "from torch.nn.parallel import *", "def DistributedDataParallel(x): ..."]
)
def test_what_is_there_is_not_asked_for(there: str) -> None:
    assert with_needed_lines(WRAP, script(f"{there}\n")) == WRAP


def test_values_bring_what_they_need_themselves() -> None:
    told = with_needed_lines("`if rank == 0: torch.save(model, path)`", script("import torch\n"))
    assert told.endswith("needs `import torch.distributed as dist`, `rank = dist.get_rank()`.")
    assert with_needed_lines("`rank = 0`, then `print(rank)`", script("")) == "`rank = 0`, then `print(rank)`"


def test_names_that_are_only_mentioned_need_nothing() -> None:
    for mention in (
        "`DistributedSampler` pads by itself.",
        "Leave `dist.all_reduce` away.",
        "No code at all.",
    ):
        assert with_needed_lines(mention, script("")) == mention


def test_an_import_inside_a_function_counts() -> None:
    assert with_needed_lines(WRAP, script(f"def main():\n    {IMPORT}\n")) == WRAP


def test_names_of_the_table_can_be_imported() -> None:
    for name in (
        "DDP",
        "DistributedDataParallel",
        "DistributedSampler",
        "dist",
        "DataLoader",
        "nn",
        "np",
        "os",
    ):
        bound: dict[str, object] = {}
        exec(import_of(name), bound)
        assert name in bound
    assert import_of("local_rank") == import_of("anything") == ""


def test_advice_of_a_rule_runs_when_pasted() -> None:
    """A plain `cuda` on every rank: what is advised names all it needs, and runs without any GPU."""
    text = "import torch\nfrom torch.distributed import init_process_group\ninit_process_group('gloo')\n"
    text += "device = torch.device('cuda')\n"
    (found,) = [one for one in lint(submission(text)) if one.code == "DEV001"]
    code = re.findall("`([^`]+)`", found.hint)
    lines = [line for line in code if line.startswith("import ")] + [
        line for line in code if "import " not in line
    ]
    bound: dict[str, object] = {}
    exec("import os, torch\nos.environ['LOCAL_RANK'] = '0'", bound)
    for line in lines:
        ast.parse(line)
        exec(line, bound)
    assert "`import os`" in found.hint
    assert "device" in bound


def test_code_calls_what_it_needs_by_the_script_s_own_names() -> None:
    own = script(
        "import torch.distributed as td\nfrom torch.nn.parallel import DistributedDataParallel as Wrap\n"
    )
    advice = "`model = DistributedDataParallel(model)`, then `dist.barrier()`; not dist, `x.dist`."
    told = with_needed_lines(advice, own)
    assert told == "`model = Wrap(model)`, then `td.barrier()`; not dist, `x.dist`."
    both = script("import torch.distributed as td\nimport torch.distributed as dist\n")
    assert with_needed_lines("`dist.barrier()`", both) == "`dist.barrier()`"
    given = with_needed_lines("`run(dist=1)`", own)
    assert given == "`run(dist=1)`", "an argument's name is nobody's import"


HOLDER = """import torch.distributed as dist
class Torus:
    def __init__(self):
        self.me, self.np = dist.get_rank(), dist.get_world_size()
    def right(self):
        return (self.me + 1) % self.np
def average(buffer, torus):
    return torus.me, torus.np
def other(buffer):
    return buffer
average(1, Torus())
"""


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (8, "`torus.me % torus.np`"),
        (6, "`self.me % self.np`"),
        (10, ("`rank % world_size` Above it your script needs `rank = dist.get_rank()`, "
             "`world_size = dist.get_world_size()`.")),
    ],
)  # fmt: skip
def test_what_holds_the_rank_where_the_advice_is_about_is_read(line: int, told: str) -> None:
    assert with_needed_lines("`rank % world_size`", script(HOLDER), "train.py", line) == told


def test_a_name_of_the_whole_file_holds_the_rank_everywhere() -> None:
    text = "import torch.distributed as dist\nme = dist.get_rank()\nprint(me)\ndef f(x):\n    return x\n"
    assert with_needed_lines("`if rank == 0: save()`", script(text), "train.py", 5) == "`if me == 0: save()`"


def test_what_was_computed_of_the_rank_is_not_the_rank() -> None:
    text = "import torch.distributed as dist\nme = dist.get_rank() + 1\nprint(me)\n"
    assert "Above it your script needs" in with_needed_lines("`print(rank)`", script(text), "train.py", 3)
