"""Lines that never run because nobody calls their function, and ways in that make it uncertain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from grader.checks.never_run import telling_what_never_runs
from grader.checks.source.script import Script

HOOKS = """
import torch
{first}
class Hook{base}:
    def before_epoch(self): ...
    def before_train_epoch(self): ...
    def after_run(self): ...
class Own(Hook):
    def {name}(self):
        here("a")
hooks = [Own()]
def call(name):
    for hook in hooks:
        getattr(hook, name)()
def main():
    call("before_train_epoch")
    {last}
    call("after_run")
main()
"""


def hooks(name: str = "before_epoch", first: str = "", base: str = "", last: str = "pass") -> str:
    return HOOKS.format(name=name, first=first, base=base, last=last)


@pytest.mark.parametrize(
    ("text", "function", "instead"),
    [
        (hooks(), "before_epoch", "before_train_epoch"),
        (hooks(base="(object)"), "before_epoch", "before_train_epoch"),
        (hooks(last="torch.nn.Linear(1, 1).eval()"), "before_epoch", "before_train_epoch"),
        (hooks(last="call(f'after_{part}')"), "before_epoch", "before_train_epoch"),
        (hooks(name="finish"), "finish", None),
        ("def run():\n    pass\ndef left():\n    here('a')\nrun()", "left", None),
        ("def run():\n    pass\ndef left():\n    inner()\ndef inner():\n    here('a')\nrun()", "left", None),
        (
            "def run():\n    pass\ndef left():\n    def inner():\n        here('a')\n    inner()\nrun()",
            "left",
            None,
        ),
        (
            (
                "class T:\n    def fit(self):\n        self.train_epoch()\n    def train_epoch(self): ...\n"
                "    def train_one_epoch(self):\n        here('a')\nT().fit()"
            ),
            "train_one_epoch",
            "train_epoch",
        ),
        (
            (
                "class A:\n    def setup(self): ...\nclass B(A):\n    def setup(self):\n        super().setup()\n"
                "        here('a')\n    def go(self): ...\nB().go()"
            ),
            "setup",
            None,
        ),
    ],
)
def test_lines_that_never_run(
    script: Callable[..., Script], here: Any, text: str, function: str, instead: str | None
) -> None:
    found = script(text)
    kept_by = found.unreached.above(here(found, "a"))
    assert kept_by is not None
    assert kept_by.name == function
    near = found.unreached.called_instead(kept_by)
    assert (near and near[0]) == instead
    if kept_by in found.graph.class_of:
        assert not found.may_run(here(found, "a"))


@pytest.mark.parametrize(
    "text",
    [
        hooks(name="before_train_epoch"),
        hooks(last="hooks[0].before_epoch()"),
        hooks(last="call(f'before_{part}')"),
        hooks(last="call(part)"),
        hooks(last="call('before_' + part)"),
        hooks(last="print('before_epoch')"),
        hooks(last="table = [Own.before_epoch]"),
        hooks(last="eval(line)"),
        hooks(last="print(Own.__dict__)"),
        hooks(first="import trainer_of_ours"),
        hooks(base="(torch.nn.Module)"),
        hooks(base="(metaclass=Registry)"),
        "class Data:\n    def __getitem__(self, i):\n        here('a')\ndef run(): ...\nrun()",
        "class Out:\n    def write(self, text):\n        here('a')\ndef run(): ...\nrun()",
        "import atexit\n@atexit.register\ndef last():\n    here('a')\ndef run(): ...\nrun()",
        "class T:\n    @property\n    def size(self):\n        here('a')\ndef run(t):\n    print(t.size)\nrun(T())",
        "def helper():\n    here('a')",
        "def run():\n    one()\ndef one():\n    two()\ndef two():\n    one()\n    here('a')\nrun()",
        "def run():\n    pass\ndef handed():\n    here('a')\nrun(handed)",
    ],
)
def test_lines_that_may_run(script: Callable[..., Script], here: Any, text: str) -> None:
    found = script(text)
    assert found.unreached.above(here(found, "a")) is None


@pytest.mark.parametrize(
    ("call", "asked"),
    [
        ("sampler.set_epoch(1)", "Call `sampler.set_epoch(epoch)` before it."),
        ("dist.all_reduce(total)", "Add `dist.all_reduce(total)` after the loop."),
        ("optimizer.zero_grad()", "Write `optimizer.zero_grad()` first."),
        ("dist.barrier()", "Put `dist.barrier()` there."),
        ("scheduler.step()", "Call `scheduler.step()` once per epoch."),
        ("torch.save(state, 'model.pt')", "Write `torch.save(model.state_dict(), path)`."),
    ],
)
def test_advice_says_what_stands_there_and_never_runs(
    script: Callable[..., Script], call: str, asked: str
) -> None:
    text = hooks().replace('here("a")', call)
    told = telling_what_never_runs(script(text), "It is missing.", asked, ())
    name = call.partition("(")[0].rpartition(".")[2]
    assert told["message"] == (
        f"It is missing. `train.py:10` calls `{name}`, and never runs, because nobody calls `before_epoch`; "
        "`train.py:16` calls `before_train_epoch`."
    )
    assert told["hint"] == (
        "Write `before_train_epoch` instead of `before_epoch` at `train.py:9`: by that name it is called."
    )
    assert [place.line for place in told["where"]] == [10, 9]


def test_advice_stays_where_the_call_stands_elsewhere_too(script: Callable[..., Script]) -> None:
    text = hooks(name="finish", last="optimizer.zero_grad()").replace('here("a")', "optimizer.zero_grad()")
    told = telling_what_never_runs(script(text), "It is missing.", "Write `optimizer.zero_grad()` first.", ())
    assert told["hint"] == (
        "Call `finish` of `train.py:9`, where that stands already. Write `optimizer.zero_grad()` first."
    )
    same = telling_what_never_runs(script(text), "It is missing.", "Write `optimizer.step()` first.", ())
    assert same["message"] == "It is missing."
