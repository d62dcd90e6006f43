"""What keeps a wrapper from averaging over all ranks: a group of one, a hook that sends nothing, `no_sync` and a step.

Answers with the node, what it does, and what to write; messages and severity are the rule's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.gradients.accumulation import Accumulation
from grader.checks.source.gradients.accumulation_rounds import counted_rounds
from grader.checks.source.gradients.causes import steps_held_back
from grader.checks.source.gradients.summing_hooks import hook_of
from grader.checks.source.gradients.sync_switches import Switch, is_no_sync, turned_off
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import name_of, walk
from grader.checks.source.syntax.tree import Tree
from grader.model.fix import Fix

_NEW_GROUP = "torch.distributed.new_group"


@dataclass(frozen=True, slots=True)
class Withheld:
    """One such place: `says` follows a place, such as `train.py:7`."""

    node: ast.AST
    says: str
    hint: str
    fix: Fix | None = None


def withheld(script: Script) -> Iterable[Withheld]:
    """All of them that the text gives away."""
    yield from _groups_of_one(script)
    yield from _silent_hooks(script)
    yield from _held_before_every_step(script)
    yield from _held_in_forward(script)
    if not script.averaging.sent_by_hand and not script.names.foreign:
        yield from _always_off(script)
        yield from _always_held(script)
    for step, block in steps_held_back(script):
        yield Withheld(
            step,
            f"steps inside the `no_sync()` block of {script.at(block)}: the gradients it uses were made there and "
            "never averaged",
            "Leave `no_sync()` before the last forward and backward pass of each step.",
        )
    for accumulation in script.accumulations.all:
        held = script.accumulation_rounds.held_when_stepping(accumulation)
        if isinstance(held, Switch):
            yield _switched_off(script, held, accumulation)
        elif held is not None:
            tested = "" if accumulation.guard is None else f", {script.quote(accumulation.guard.test)}"
            yield Withheld(
                held,
                f"holds the exchange back in a round that steps at {script.at(accumulation.step)}: the gradients "
                "of that micro-batch stay on their rank",
                f"Leave `no_sync()` in just those rounds that step: test here what the step tests{tested}.",
            )


def _switched_off(script: Script, switch: Switch, found: Accumulation) -> Withheld:
    """A switch is off in a round that steps."""
    steps = found.guard.test if found.guard is not None else None
    rounds = counted_rounds(found.loop, script.names)
    turned = switch.told.operand if isinstance(switch.told, ast.UnaryOp) else None
    same = isinstance(switch.told, ast.UnaryOp) and isinstance(switch.told.op, ast.Not)
    same = same and None not in (steps, turned) and ast.unparse(steps) == ast.unparse(turned)  # type: ignore[arg-type]
    edits = Edits(script)
    last = ast.unparse(steps) if steps is not None else rounds.last if rounds is not None else "True"
    text = switch.saying(last)
    if same and turned is not None:
        edits.replace(switch.told, edits.text(turned))
    return Withheld(
        switch.node,
        f"tells the model {script.quote(switch.node)}, which is off in the round that {script.at(found.step)} steps "
        "after: the gradients of that round are not reduced over ranks, and the step does not have the others'",
        f"Have the exchange on in the rounds that step, and off in the others: {text}.",
        edits.fix("Reduces gradients in the rounds that step.") if same else None,
    )


def _always_off(script: Script) -> Iterable[Withheld]:
    """A switch is turned off and never on again, and nothing else exchanges gradients."""
    for switch in turned_off(script.trees)[:1]:
        yield Withheld(
            switch.node,
            "turns the exchange of gradients off, and nothing turns it on again: no gradient is reduced over ranks "
            "before a step",
            f"Leave {script.quote(switch.node)} out, or turn the exchange on, {switch.saying('True')}, before the last "
            "forward and backward pass of each step.",
        )


def _always_held(script: Script) -> Iterable[Withheld]:
    """`with model.no_sync():` around every backward pass of a loop that steps."""
    blocks = [
        b for tree in script.trees for b in tree.withs if any(is_no_sync(i.context_expr) for i in b.items)
    ]
    told: set[ast.AST] = set()
    for step in script.updates.steps if blocks else ():
        for loop in script.updates.rounds(step, script.training.backwards):
            passes = script.updates.entries(loop, script.training.backwards)
            around = [next((b for b in blocks if _holds(script, b, entry, loop)), None) for entry in passes]
            block = around[0]
            if (
                block is None
                or None in around
                or block in told
                or script.names.tree(step).inside(step, block)
            ):
                continue
            told.add(block)
            yield Withheld(
                block,
                f"holds the exchange back in every round: {script.at(step)} steps with gradients that nothing has "
                "averaged",
                "Leave `no_sync()` out of the last forward and backward pass before each step; without accumulation, "
                "leave it out altogether.",
            )


def _holds(script: Script, block: ast.With | ast.AsyncWith, entry: ast.AST, loop: ast.AST) -> bool:
    """Whether a block stands around a backward pass and its forward pass in each round of a loop."""
    tree = script.names.tree(block)
    above: ast.AST | None = block
    while above is not None and above is not loop:
        if isinstance(above, ast.If | ast.Try):
            return False
        above = tree.parent.get(above)
    forwards = script.updates.forwards(entry) if isinstance(entry, ast.Call) else ()
    early = [f for f in forwards if script.training.wrapped(f.func) and not tree.inside(f, block)]
    return above is loop and tree.inside(entry, block) and not early


def _groups_of_one(script: Script) -> Iterable[Withheld]:
    for wrap in script.training.wraps:
        group = script.given(wrap, "process_group")
        if group is None:
            continue
        made = list(_made(script, group))
        if made and all(_has_one_rank(script, call) for call in made):
            edits = Edits(script)
            edits.take_away(wrap, "process_group", "None")
            yield Withheld(
                group,
                f"gives the wrapper a process group of one rank, {script.quote(group)}: it averages that rank's "
                "gradients with nobody's",
                f"Leave `process_group={edits.text(group)}` out of the wrapper: it then averages over all ranks.",
                edits.fix("Averages gradients over all ranks."),
            )


def _made(script: Script, group: ast.expr) -> Iterable[ast.expr]:
    """The calls that may have made a group, which may be picked out of a list of them."""
    picked = isinstance(group, ast.Subscript)
    for origin in script.values.origins(group.value if isinstance(group, ast.Subscript) else group):
        if picked and isinstance(origin, ast.ListComp):
            yield origin.elt
        elif picked and isinstance(origin, ast.List):
            yield from origin.elts
        elif isinstance(origin, ast.expr):
            yield origin


def _has_one_rank(script: Script, call: ast.expr) -> bool:
    if not isinstance(call, ast.Call) or script.names.qualified(call.func) != _NEW_GROUP:
        return False
    given = (keyword.value for keyword in call.keywords if keyword.arg == "ranks")
    ranks = next(given, call.args[0] if call.args else None)
    listed = isinstance(ranks, ast.List | ast.Tuple) and len(ranks.elts) == 1
    return listed and not isinstance(ranks.elts[0], ast.Starred)  # type: ignore[union-attr]


def _silent_hooks(script: Script) -> Iterable[Withheld]:
    for call in script.called("register_comm_hook"):
        hook, body = hook_of(script, call)
        if hook is None or body is None or not _sends_nothing(script, body):
            continue
        edits, statement = Edits(script), script.names.tree(call).statement(call)
        if isinstance(statement, ast.Expr) and statement.value is call:
            edits.remove(statement)
        yield Withheld(
            call,
            f"puts a hook in the place of the wrapper's own exchange, and {script.quote(hook)} calls no collective: "
            "each rank gets its own gradients back",
            f"Leave {script.quote(call)} out: the wrapper averages by itself. A hook that stays must return the "
            "mean over all ranks, such as that of `torch.distributed.algorithms.ddp_comm_hooks.default_hooks`.",
            edits.fix("Leaves the exchange to the wrapper."),
        )


def _sends_nothing(script: Script, body: ast.AST) -> bool:
    """Whether all that a function calls is a method of its own values, or torch's and no exchange."""
    for node in walk(body):
        if not isinstance(node, ast.Call):
            continue
        name = script.names.qualified(node.func)
        if script.collectives.inside(node) or (name or "").startswith("torch.distributed."):
            return False
        if name is None and (not isinstance(node.func, ast.Attribute) or script.graph.definition(node.func)):
            return False
        if "reduce" in name_of(node) or "hook" in name_of(node):
            return False
    return True


def _held_before_every_step(script: Script) -> Iterable[Withheld]:
    """A context that is `no_sync()` in some rounds of a loop that clears gradients and steps in every round."""
    for tree in script.trees:
        for block in tree.withs:
            for item in block.items:
                context = item.context_expr
                if not isinstance(context, ast.IfExp) or not _steps_each_round(script, tree, block):
                    continue
                branches = (context.body, context.orelse)
                held = [branch for branch in branches if is_no_sync(branch)]
                if len(held) != 1:
                    continue
                other = branches[1] if held[0] is branches[0] else branches[0]
                edits = Edits(script)
                edits.replace(context, edits.text(other))
                yield Withheld(
                    block,
                    f"holds the exchange back in rounds with {script.quote(context.test)}, but the loop clears its "
                    "gradients and steps in every round: those rounds step with gradients of their own rank",
                    f"Let every backward pass that a step follows average: `with {edits.text(other)}:`. To "
                    "accumulate, clear the gradients and step in the last round of each group alone, and hold the "
                    "exchange back in all others.",
                    edits.fix("Averages gradients in every round that steps."),
                )


def _held_in_forward(script: Script) -> Iterable[Withheld]:
    """A backward pass outside of `no_sync()` whose forward passes all stand inside: these have decided already."""
    for backward in script.training.backwards:
        forwards = [c for c in script.updates.forwards(backward) if script.training.wrapped(c.func)]
        around = [_no_sync_around(script, forward) for forward in forwards]
        blocks = [block for block in around if block is not None]
        if not blocks or len(blocks) < len(around) or _no_sync_around(script, backward) is not None:
            continue
        tree = script.names.tree(forwards[0])
        yield Withheld(
            blocks[0],
            f"runs the forward pass, {script.quote(tree.statement(forwards[0]))}, under `no_sync()`, and the backward "
            f"pass of {script.at(backward)} outside of it. DDP decides in the forward pass whether the backward pass "
            "averages, and this one does not",
            "Take the forward pass out of `no_sync()`, too: each step's last forward and backward pass belong outside.",
        )


def _no_sync_around(script: Script, node: ast.AST) -> ast.With | ast.AsyncWith | None:
    """The block around a node that holds the exchange back in any case."""
    tree = script.names.tree(node)
    for block in tree.withs:
        if tree.inside(node, block) and any(is_no_sync(item.context_expr) for item in block.items):
            return block
    return None


def _steps_each_round(script: Script, tree: Tree, block: ast.With | ast.AsyncWith) -> bool:
    above = tree.parent.get(block)
    if not isinstance(above, ast.For | ast.While) or block not in above.body:
        return False
    after = above.body[above.body.index(block) + 1 :]
    steps = any(tree.statement(step) in after for step in script.updates.steps)
    clears = any(
        isinstance(statement, ast.Expr) and name_of(statement.value) == "zero_grad"
        for statement in above.body
    )
    return steps and clears and any(tree.inside(b, s) for b in script.training.backwards for s in block.body)
