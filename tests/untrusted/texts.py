"""Texts of a megabyte that once cost a reader more than they should, or might: of attacks, fuzzers, measurements."""

from __future__ import annotations

SIZE = 1 << 20
_IMPORTS = "import torch\nimport torch.distributed as dist\ndist.init_process_group('nccl')\n"
_LOOP = """\
for x, y in loader:
    optimizer.zero_grad()
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    print(loss.item())
    if dist.get_rank() == 0: dist.all_reduce(loss)
"""


def _filled(unit: str, before: str = "", after: str = "\n") -> str:
    """As often as fits into a file of the largest size."""
    room = SIZE - len((before + after).encode())
    return before + unit * (room // len(unit.encode())) + after


def _nested_ifs() -> str:
    tower = "".join(f"{' ' * depth}if x:\n" for depth in range(90)) + " " * 90 + "pass\n"
    return _filled(tower, after="")


TEXTS = {
    "quotes": _filled("'"),
    "comments full of quotes": _filled(" # '", "f(1,"),
    "comments behind a call": _filled(" # a", "f(1 + (", "\n2))\n"),
    "open brackets": _filled("("),
    "open braces": _filled("{0:"),
    "three kinds of brackets": _filled("({["),
    "one f-string": _filled("{a}", "x = f'", "'\n"),
    "many f-strings": _filled("x = f'{a}'\n"),
    "nested f-string": _filled("{a:", "x = f'", "'\n"),
    "functions in a row": "".join(f"def f{n}(x): return f{n + 1}(x)\n" for n in range(20_000)),
    "functions in a ring": _IMPORTS
    + "".join(
        f"def f{n}(m, x):\n    m.step()\n    return f{n * 7919 % 20_000}(m, x)\n" for n in range(17_000)
    ),
    "one long sum": _filled("1+", "x = ", "1\n"),
    "one long list": _filled("1,", "x = [", "]\n"),
    "one long comparison": _filled("a<", "x = ", "a\n"),
    "one long string": _filled("a", "x = '", "'\n"),
    "one long name": _filled("zero", after=" = 1\n"),
    "one long number": _filled("9", "x = "),
    "one long number of base 16": _filled(
        "f", "import torch.distributed as dist\nif dist.get_rank() == 0x", ": f()\n"
    ),
    "comments": _filled("#\n"),
    "blanks": _filled(" ", "x = 1", "#\n"),
    "line continuations": _filled("\\\n"),
    "nested ifs": _nested_ifs(),
    "elifs": _filled("elif a: pass\n", "if a: pass\n"),
    "attributes": _filled(".a", "x"),
    "calls of calls": _filled("()", "x"),
    "minuses": _filled("-", after="1\n"),
    "lambdas": _filled("lambda: ", after="1\n"),
    "assignments in a row": "".join(f"a{n} = a{n - 1}\n" for n in range(1, 60_000)),
    "training loops": _filled(_LOOP, _IMPORTS),
    "rank guards": _filled("if rank == 0:\n    dist.barrier()\n", f"{_IMPORTS}rank = dist.get_rank()\n"),
    "silencing comments": _filled("A1,", "x = 1 # noqa: "),
    "classes in a row": "".join(
        f"class C{n}(C{n - 1}):\n  def f(self): return self.f()\n" for n in range(20_000)
    ),
    "imports": _filled("import torch\n"),
    "decorators": _filled("@a\n", after="def f(): pass\n"),
    "letters of two bytes": _filled("é"),
    "byte order marks": _filled("\ufeff"),
    "form feeds": _filled("\f\n"),
}
