"""Functions that call each other: each is judged once, however many ways lead through them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.checks.limited_reading import AT_COMMAND, lint_within
from grader.checks.source.calls.ways import circles
from grader.checks.source.script import Script
from grader.model.submission import SourceFile, Submission

START = "import torch.distributed as dist\ndist.init_process_group('gloo')\nrank = dist.get_rank()\n"
BODY = (
    "    dist.all_reduce(x)\n    loss = model(x)\n    loss.backward()\n    opt.step()\n"
    "    for p in model.parameters():\n        p.requires_grad_(False)\n"
    "    open('log.csv', 'a').write('x')\n"
)


def layers(num_layers: int, width: int) -> str:
    """Each function calls all of the next layer."""
    text = START
    for layer in range(num_layers):
        below = [
            f"    f{layer + 1}_{n}(model, opt, x)\n" for n in range(width if layer + 1 < num_layers else 0)
        ]
        text += "".join(f"def f{layer}_{n}(model, opt, x):\n{BODY}{''.join(below)}" for n in range(width))
    return f"{text}f0_0(model, opt, x)\n"


def circle(size: int) -> str:
    """Each function calls four others, so that all of them lead to each other."""
    text = START
    for n in range(size):
        called = ((n * 3 + 1) % size, (n * 5 + 2) % size, (n + 1) % size, (n * 7 + 3) % size)
        text += f"def f{n}(model, opt, x):\n{BODY}" + "".join(f"    f{c}(model, opt, x)\n" for c in called)
    return f"{text}f0(model, opt, x)\n"


@pytest.mark.parametrize("text", [layers(12, 5), circle(30)], ids=["layers", "circle"])
def test_many_ways_take_no_longer_than_the_functions_on_them(text: str) -> None:
    findings = lint_within(AT_COMMAND, Submission("test", (SourceFile("train.py", text),)))
    assert "SYNTAX" not in {finding.code for finding in findings}


def test_functions_of_a_circle_run_what_any_of_them_runs(script: Callable[..., Script]) -> None:
    text = "def a(x):\n    b(x)\ndef b(x):\n    c(x)\n    a(x)\ndef c(x):\n    dist.barrier()\n    b(x)\nb(1)\na(1)\n"
    read = script(START + text)
    for call in read.called("a", "b", "c"):
        assert [one.name for one in read.collectives.of(call)] == ["barrier"], read.quote(call)


def test_a_chain_that_calls_the_next_one_twice_runs_few_collectives(script: Callable[..., Script]) -> None:
    text = "".join(f"def f{n}(x):\n    f{n + 1}(x)\n    f{n + 1}(x)\n" for n in range(40))
    read = script(f"{START}{text}def f40(x):\n    dist.all_reduce(x)\n    dist.barrier()\nf0(1)\n")
    found = read.collectives.of(read.called("f0")[0])
    assert {one.name for one in found} == {"all_reduce", "barrier"}
    assert len(found) < 100


def test_a_circle_runs_where_one_of_it_is_called(script: Callable[..., Script]) -> None:
    text = "def a(x):\n    b(x)\ndef b(x):\n    a(x)\n    here(x)\na(1)\n"
    read = script(START + text)
    assert all(read.guards.on_every_rank(call) for call in read.called("a", "b", "here"))


def test_a_circle_under_a_rank_test_is_kept_from_the_others(script: Callable[..., Script]) -> None:
    text = "def a(x):\n    b(x)\ndef b(x):\n    a(x)\n    here(x)\nif rank == 0:\n    a(1)\n"
    read = script(START + text)
    assert not any(read.guards.on_every_rank(call) for call in read.called("a", "b", "here"))


def test_callees_come_before_their_callers() -> None:
    from ast import AST, FunctionDef, parse

    body = parse("".join(f"def {name}(): pass\n" for name in "abcde")).body
    a, b, c, d, e = (node for node in body if isinstance(node, FunctionDef))
    called: dict[AST, list[AST]] = {a: [b], b: [c, d], c: [b], d: [], e: [a, e]}
    assert circles([a, b, c, d, e], called.__getitem__) == [(d,), (b, c), (a,), (e,)]
