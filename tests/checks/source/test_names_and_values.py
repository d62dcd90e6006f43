"""A rule finds the call it means however it was imported, and the value it means however it was handed on."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import pytest

from grader.checks.source.script import Script


@pytest.mark.parametrize(
    "text",
    [
        "import torch\ntorch.utils.data.DataLoader(d)",
        "import torch.utils.data as data\ndata.DataLoader(d)",
        "from torch.utils import data\ndata.DataLoader(d)",
        "from torch.utils.data import DataLoader as DL\nDL(d)",
        "from torch.utils.data.dataloader import DataLoader\nDataLoader(d)",
        "from torch.utils.data import *\nDataLoader(d)",
        "import torch\nLoader = torch.utils.data.DataLoader\nLoader(d)",
        "def f():\n    from torch.utils.data import DataLoader\n    return DataLoader(d)",
        "try:\n    from fast import DataLoader\nexcept:\n    from torch.utils.data import DataLoader\nDataLoader(d)",
    ],
)
def test_one_name_for_all_imports(script: Callable[..., Script], text: str) -> None:
    assert len(script(text).calls("torch.utils.data.DataLoader")) == 1


def test_a_local_class_of_that_name_is_not_the_librarys(script: Callable[..., Script]) -> None:
    assert script("class DataLoader: pass\nDataLoader(d)").calls("torch.utils.data.DataLoader") == []


def test_names_through_modules_of_the_submission(script: Callable[..., Script]) -> None:
    found = script(
        "from parts.model import wrap\nhere('a', wrap(net))",
        parts____init__="",
        parts__model="from torch.nn.parallel import DistributedDataParallel as D\ndef wrap(m):\n    return D(m)\n",
    )
    call = next(c for c in found.all_calls() if getattr(c.func, "id", "") == "here")
    assert found.training.wrapped(call.args[1])


@pytest.mark.parametrize(
    "text",
    [
        "x = 7\nhere('a', x)",
        "x = 3\nx = 7\nhere('a', x)",
        "x, y = 7, 3\nhere('a', x)",
        "y, (x, z) = 3, (7, 1)\nhere('a', x)",
        "def f(v):\n    here('a', v)\nf(7)",
        "def f(w, v=7):\n    here('a', v)\nf(3)",
        "def f():\n    return 3, 7\n_, x = f()\nhere('a', x)",
        "class A:\n  def __init__(self, v):\n    self.v = v\n  def go(self):\n    here('a', self.v)\nA(7).go()",
        "class C:\n    n = 7\nc = C()\nhere('a', c.n)",
        "class C:\n  def __init__(s, v):\n    s.v = v\n  @classmethod\n  def of(cls, v):\n    here('a', v)\nC.of(7)",
        "class C:\n  @classmethod\n  def of(cls, v):\n    cls(v)\n  def __init__(s, v):\n    here('a', v)\nC.of(7)",
        "import argparse\nargs = argparse.Namespace()\nargs.n = 7\ndef f(a):\n    here('a', a.n)\nf(args)",
        "x = {'k': 7, 'l': 3}\nhere('a', x['k'])",
        "x = {}\nx['k'] = 7\nhere('a', x['k'])",
        "x = dict(k=7, l=3)\nhere('a', x['k'])",
        "x = dict(k=3)\nx.update(k=7)\nhere('a', x['k'])",
        "if (x := 7):\n    here('a', x)",
        "class C:\n    k: int\n    n: int = 3\nc = C(2, n=7)\nhere('a', c.n)",
        "class C:\n    k: int\n    n: int = 3\nc = C(2, 7)\nhere('a', c.n)",
        "from types import SimpleNamespace\nc = SimpleNamespace(k=3, n=7)\nhere('a', c.n)",
        "def f():\n    return 3, 7\n(_, x), y = f(), 2\nhere('a', x)",
        "x = 3\nif flag:\n    x = 7\nelse:\n    x = 7\nhere('a', x)",
        "def f():\n    if flag:\n        x = 3\n        return\n    else:\n        x = 7\n    here('a', x)\nf()",
        "def f(**options):\n    return 7\nhere('a', f(k=3))",
        "class A:\n  @property\n  def v(self):\n    return 7\n  def go(self):\n    here('a', self.v)\nA().go()",
        "@contextmanager\ndef f():\n    yield 7\nwith f() as x:\n    here('a', x)",
        "@asynccontextmanager\nasync def f():\n  yield 3, 7\nasync def g():\n  async with f() as (_, x): here('a', x)",
        "@contextmanager\ndef f():\n    yield 7\nwith ExitStack() as s:\n  x = s.enter_context(f())\n  here('a', x)",
        "class A:\n  def save(self, v): here('a', v)\n@contextmanager\ndef f(): yield A()\nwith f() as a:\n  a.save(7)",
        (
            "class A:\n  def save(self, v):\n    here('a', v)\n"
            "@contextmanager\ndef f():\n  a = A()\n  yield a\nwith f() as a:\n  a.save(7)"
        ),
    ],
)
def test_values_are_followed_to_their_source(script: Callable[..., Script], here: Any, text: str) -> None:
    found = script(text)
    assert found.values.constant(here(found, "a").args[1]) == 7


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    return rank, seed\n_, x = f()\nhere('a', x)",
        "def f(a):\n    return rank, a\n_, a = f(seed)\nhere('a', a.x)",
        "def f():\n    return {'r': rank, 's': seed}\nhere('a', f()['s'])",
        "class C:\n    r: int\n    s: int\nhere('a', C(rank, seed).s)",
        "from types import SimpleNamespace\nc = SimpleNamespace(r=rank, s=seed)\nhere('a', c.s)",
        "class C:\n  def __init__(self, r, s):\n    self.r, self.s = r, 0\n    self.t = s\nhere('a', C(rank, seed).t)",
    ],
)
def test_a_part_is_made_of_what_was_put_there_alone(
    script: Callable[..., Script], here: Any, text: str
) -> None:
    found = script(text)
    parts = {n.id for n in found.values.closure(here(found, "a").args[1]) if isinstance(n, ast.Name)}
    assert "seed" in parts
    assert "rank" not in parts


def test_what_methods_change_may_be_made_of_all_that_an_object_is_given(
    script: Callable[..., Script], here: Any
) -> None:
    text = "class C:\n  def __init__(self): self.n = 0\n  def put(self, v): self.n = v\n"
    found = script(f"{text}c = C(rank)\nhere('a', c.n)")
    assert any(
        isinstance(n, ast.Name) and n.id == "rank" for n in found.values.closure(here(found, "a").args[1])
    )


@pytest.mark.parametrize(
    "text",
    [
        "class A:\n  @property\n  def v(self): return go()\nx = A()\nhere('a', x.v)",
        "class A:\n  @cached_property\n  def v(self): return go()\ndef f(x):\n  here('a', x.v)\nf(A())",
        "class B:\n  @property\n  def v(self): return go()\nclass A(B):\n  def f(self): here('a', self.v)",
    ],
)
def test_reading_a_property_is_a_call(script: Callable[..., Script], here: Any, text: str) -> None:
    found = script(text)
    read = here(found, "a").args[1]
    assert isinstance(read, ast.Call)
    assert [getattr(t, "name", "") for t in found.graph.targets(read)] == ["v"]
    assert ast.unparse(read) == found.quote(read).strip("`")


@pytest.mark.parametrize(
    "text",
    [
        "class A:\n  @property\n  def v(self): return 7\nx = A()\nhere('a', x.v)",
        "class A:\n  @property\n  def v(self): return go()\nhere('a', unknown.v)",
        "class A:\n  def v(self): return go()\nx = A()\nhere('a', x.v)",
    ],
)
def test_other_attributes_are_none(script: Callable[..., Script], here: Any, text: str) -> None:
    found = script(text)
    assert isinstance(here(found, "a").args[1], ast.Attribute)


@pytest.mark.parametrize(
    "text",
    [
        "here('a', unknown)",
        "x = 7\nif flag:\n    x = 3\nhere('a', x)",
        "x = 7\nwhile go():\n    here('a', x)\n    x = x + 1",
        "def f(v):\n    here('a', v)\nf(7)\nf(3)",
        "x = compute()\nhere('a', x)",
        "x = x\nhere('a', x)",
        "def f(n):\n    return f(n)\nhere('a', f(7))",
        "def f():\n    yield 7\nx = f()\nhere('a', x)",
        "@contextmanager\ndef f():\n  if flag:\n    yield 7\n  else:\n    yield 3\nwith f() as x:\n  here('a', x)",
        "@contextmanager\ndef f():\n    with f() as x:\n        yield x\nwith f() as x:\n    here('a', x)",
    ],
)
def test_no_value_is_claimed_where_there_may_be_several(
    script: Callable[..., Script], here: Any, text: str
) -> None:
    found = script(text)
    assert found.values.constant(here(found, "a").args[1]) != 7


def test_arguments_by_position_keyword_and_options(script: Callable[..., Script]) -> None:
    found = script(
        """
        from torch.utils.data import DataLoader
        options = dict(shuffle=True)
        options["drop_last"] = True
        DataLoader(data, 64, False, None, None, 2)
        DataLoader(data, **options)
        DataLoader(data, **given)
        """
    )
    by_position, by_options, hidden = found.calls("torch.utils.data.DataLoader")
    workers = found.argument(by_position, "num_workers")
    assert isinstance(workers, ast.Constant)
    assert workers.value == 2
    assert found.argument(by_position, "drop_last") is None
    assert found.values.constant(found.argument(by_options, "shuffle")) is True
    assert found.values.constant(found.argument(by_options, "drop_last")) is True
    assert found.argument(by_options, "sampler") is None
    assert found.argument(hidden, "sampler") is not None, "it may be in there: nobody can say that it is not"


def test_calls_quote_themselves_and_their_place(script: Callable[..., Script]) -> None:
    found = script("# größer\nx = f('ä', torch.save(a,\n   b))  # note\n")
    outer, inner = found.all_calls()
    assert found.quote(inner) == "`torch.save(a, …`"
    assert found.at(outer) == "`train.py:2`"
    assert found.location(outer).end_line == 3
