"""What a seed is made of: the same number on all ranks, one with the rank in it, or another one in each process."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from enum import Enum

from grader.checks.source.causes import names_rank
from grader.checks.source.ranks.rank_expressions import PLACING
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import READS, literal, name_of, walk
from grader.checks.source.values.data_flow import all_parts
from grader.checks.source.values.synchronized_values import spreads
from grader.model.fix import Fix

_SPREADING = ("broadcast", "broadcast_object_list", "all_reduce")


class Seeded(Enum):
    """What the text says about the state of a generator when it is drawn from."""

    NEVER = "never"
    """Each process draws its own numbers."""
    ALIKE = "alike"
    """A seed that is the same on all ranks."""
    BY_RANK = "by rank"
    UNKNOWN = "unknown"


def seeded(script: Script, node: ast.expr) -> Seeded:
    """What a seed is: the same on all ranks, made with the rank, or another one each time."""
    if is_none(node):
        return Seeded.NEVER
    made_of = _parts(script, node)
    if script.ranks.rank(node) or any(
        isinstance(p, ast.Name | ast.Attribute | ast.Call | ast.Subscript) and script.ranks.rank(p)
        for p in made_of
    ):
        return Seeded.BY_RANK
    return Seeded.NEVER if any(_own_each_time(script, p) for p in made_of) else Seeded.ALIKE


def drawn_apart(script: Script, seeds: Iterable[ast.expr]) -> list[ast.stmt]:
    """Statements that draw a seed anew on each rank; first what gives it back in spite of a broadcast beside it."""
    told = [seed for seed in seeds if seeded(script, seed) is Seeded.BY_RANK]
    found = [script.names.tree(seed).statement(seed) for seed in told]
    for part in [p for seed in seeds for p in _parts(script, seed)]:
        if not _own_each_time(script, part):
            continue
        tree = script.names.tree(part)
        function = tree.function(part)
        if function is not None and any(tree.function(c) is function for c in _spread(script)):
            found += tree.returns.get(function, ())
        found.append(tree.statement(part))
    return list(dict.fromkeys(found))


def share_seed(script: Script, where: Iterable[ast.stmt]) -> tuple[str, Fix | None]:
    """What to write at these statements so that all ranks have one seed; "" where nothing of theirs is sent."""
    for statement in where:
        tree = script.names.tree(statement)
        sent = [c for c in _spread(script) if tree.function(c) is tree.function(statement) is not None]
        if isinstance(statement, ast.Return) and statement.value is not None and sent:
            listed = name_of(sent[0]) == "broadcast_object_list"
            edits = Edits(script)
            filled = edits.text(sent[0].args[0]) + ("[0]" if listed else ".item()")
            edits.replace(statement.value, filled)
            fix = edits.fix("Gives all ranks the seed that was sent.")
            return f"Give back what the broadcast has filled: `return {filled}`.", fix
        if names_rank(script, statement):
            said = f"Leave the rank out of the seed in {script.at(statement)}: it only chooses the share."
            return said, None
        for call in (n for n in walk(statement) if isinstance(n, ast.Call)):
            if script.names.qualified(call.func) == "hash" and _own_each_time(script, call):
                salted = f"Python hashes texts anew in each process, so {script.quote(call)} differs from rank to rank"
                said = f"Seed with numbers in {script.at(statement)}, such as a constant plus the epoch: {salted}."
                return said, None
    return "", None


def is_none(node: ast.expr) -> bool:
    """`None`, written out."""
    return isinstance(node, ast.Constant) and node.value is None


def _spread(script: Script) -> list[ast.Call]:
    return [c for name in _SPREADING for c in script.calls(f"torch.distributed.{name}") if c.args]


def _parts(script: Script, seed: ast.expr) -> list[ast.AST]:
    """All that makes a seed another number: not where it lies, and nothing of what all ranks were told instead."""

    def of_no_matter(node: ast.AST) -> bool:
        if isinstance(node, ast.keyword):
            return node.arg in PLACING
        if isinstance(node, ast.Call):
            told = spreads(name_of(node)) and not script.graph.targets(node)
            return told or script.values.filled.gives_back(node)
        return script.values.filled.has(node)

    return all_parts(script, seed, of_no_matter)


def _own_each_time(script: Script, call: ast.AST) -> bool:
    """Whether a call gives another number in each process; of texts Python makes another hash in each."""
    if isinstance(call, ast.Call) and script.names.qualified(call.func) == "hash":
        nodes = [o for n in walk(call) for o in (script.values.origins(n) if isinstance(n, READS) else (n,))]
        return any(isinstance(n, ast.JoinedStr) or isinstance(literal(n), str) for n in nodes)
    name = script.names.qualified(call.func) or "" if isinstance(call, ast.Call) else ""
    return name in (
        "time.time",
        "time.time_ns",
        "os.getpid",
        "os.urandom",
        "torch.seed",
        "random.randint",
    ) or name.startswith(("datetime.", "random.SystemRandom", "secrets.", "uuid."))
