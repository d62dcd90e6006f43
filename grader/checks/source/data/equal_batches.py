"""Training batches that are drawn by hand, at random places of the data, from a generator that all ranks seed alike.

Each rank then draws the same samples. Silent where anything with the rank in it chooses the samples, or the data; and
where the text does not show that the data come from a file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.causes import made_of_rank
from grader.checks.source.data.seed_fixes import by_rank
from grader.checks.source.script import Script
from grader.checks.source.values.random_generators import Seeding
from grader.checks.source.values.seeds import Seeded

_PLACES = re.compile(
    r"^(torch|numpy\.random|random)\.(randint|randperm|permutation|choice|choices|sample|randrange)$"
)
_READING = re.compile(r"load|memmap|fromfile|read|open|datasets")


@dataclass(frozen=True, slots=True)
class EqualBatches:
    """One such draw, with the call that seeds all ranks alike; `says` follows a place, such as `train.py:7`."""

    draw: ast.Call
    seed: ast.Call
    says: str
    hint: str


def equal_batches(script: Script) -> Iterable[EqualBatches]:
    """All of them."""
    training, seeding = script.training, Seeding(script)
    if seeding.kept_by_rank or any(training.roles(loader).trains for loader in training.loaders()):
        return
    seeds = [c for c in seeding.alike if script.guards.on_every_rank(c) and script.guards.partial(c) is None]
    told: set[ast.AST] = set()
    for backward in training.backwards if seeds else ():
        parts = [part for call in script.updates.forwards(backward) for part in script.values.closure(call)]
        reads = [part for part in parts if isinstance(part, ast.Subscript)]
        if any(made_of_rank(script, read.slice) for read in reads):
            return  # a share of what all have drawn
        for read in reads:
            for draw in script.values.closure(read.slice):
                if isinstance(draw, ast.Call) and draw not in told and _alike(script, seeding, draw, read):
                    told.add(draw)
                    yield _finding(script, draw, seeds[0])


def _finding(script: Script, draw: ast.Call, seed: ast.Call) -> EqualBatches:
    written = by_rank(script, seed)
    there = f" at {script.at(seed)}: `{written}`" if written else ""
    return EqualBatches(
        draw,
        seed,
        f"draws the samples of each batch, {script.quote(draw)}, and {script.at(seed)} seeds all ranks alike, "
        f"{script.quote(seed)}. Every rank then trains on the same batches: N devices do the same work N times.",
        f"Seed by rank{there}. Each rank then draws its own.",
    )


def _alike(script: Script, seeding: Seeding, draw: ast.Call, read: ast.Subscript) -> bool:
    """Whether a draw gives the same places on all ranks, and they are read from the same files."""
    name = script.names.qualified(draw.func) or ""
    if not _PLACES.match(name) or seeding.drawn(draw)[1] is not Seeded.ALIKE:
        return False
    data = script.values.closure(read.value)
    from_file = any(
        isinstance(p, ast.Call) and _READING.search(script.names.qualified(p.func) or "") for p in data
    )
    return from_file and not made_of_rank(script, read.value) and script.replicas.on_some_ranks(draw) is None
