"""What gives each process a number of its own: its clock, and random draws that no seed makes alike.

Draws count only where the text shows that nobody seeded what they come from, or that the rank is in the seed.
"""

from __future__ import annotations

import ast
from functools import cached_property

from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import name_of
from grader.checks.source.values.random_generators import Seeding
from grader.checks.source.values.seeds import Seeded

_CLOCKS = {"time.time", "time.perf_counter", "time.monotonic", "time.process_time", "datetime.datetime.now"}
_DRAWING = {"choice", "gauss", "integers", "normal", "rand", "randint", "random", "randrange", "uniform"}
_GENERATORS = ("Random", "RandomState", "default_rng")
_APART = (Seeded.NEVER, Seeded.BY_RANK)
# How a generator is made that draws alike on all ranks, by the library whose function draws now.
_ALIKE = {"numpy": "numpy.random.default_rng", "random": "random.Random", "torch": "torch.Generator"}


class OwnNumbers:
    """Clocks and draws of one script."""

    def __init__(self, script: Script) -> None:
        self._script = script

    @cached_property
    def _seeding(self) -> Seeding:
        return Seeding(self._script)

    def of(self, call: ast.Call) -> str:
        """`clock` or `draw` for a call that gives each rank a number of its own, "" for any other."""
        if self._script.names.qualified(call.func) in _CLOCKS:
            return "clock"
        return "draw" if self._state(call) in _APART else ""

    def seeded(self, call: ast.Call) -> str:
        """How it comes that a draw differs: a clause."""
        if self._state(call) is not Seeded.BY_RANK:
            return "nothing seeds it, so each process draws its own numbers"
        head = (self._script.names.qualified(call.func) or "?").partition(".")[0]
        seeds = [
            s for s in self._seeding.by_rank if (self._script.names.qualified(s.func) or "").startswith(head)
        ]
        return f"each rank seeds it with another number{f' at {self._script.at(seeds[0])}' if seeds else ''}"

    def _state(self, call: ast.Call) -> Seeded:
        drawn, state = self._seeding.drawn(call)
        if drawn or not isinstance(call.func, ast.Attribute) or call.func.attr not in _DRAWING:
            return state
        made = (o for o in self._script.values.origins(call.func.value) if isinstance(o, ast.Call))
        if any((self._script.names.qualified(o.func) or "").endswith(_GENERATORS) for o in made):
            return self._seeding.generator(call.func.value)
        return Seeded.UNKNOWN


def drawn_alike(script: Script, draw: ast.AST) -> str:
    """What makes a draw the same on all ranks: a generator with one seed, as advice."""
    name = script.names.qualified(draw.func) or "" if isinstance(draw, ast.Call) else ""
    maker = _ALIKE.get(name.partition(".")[0])
    if maker is None or not isinstance(draw, ast.Call):
        return "Seed the generator that it draws from with one number on all ranks, or decide by what they count alike."
    made = f"coin = {Edits(script).name(maker, draw)}"
    if maker == "torch.Generator":
        given = ", ".join([*(ast.unparse(a) for a in draw.args), "generator=coin"])
        made, drawn = f"{made}().manual_seed(0)", f"{ast.unparse(draw.func)}({given})"
    else:
        given = ", ".join([ast.unparse(a) for a in draw.args])
        method = {"rand": "random", "randint": "integers"} if maker.startswith("numpy") else {}
        drawn = f"coin.{method.get(name_of(draw), name_of(draw))}({given})"
        made = f"{made}(0)"
    return (
        f"Draw from a generator that all ranks seed alike: `{made}` once, below the imports, and `{drawn}` "
        "here. Or decide by what all ranks count alike, such as the step."
    )
