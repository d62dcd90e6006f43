"""Batch sizes, learning rates and lengths of schedules written anew, where a run has shown by how much they are off."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.causes import lengths_of, rates_by_world, stands_at, warm_up_lengths
from grader.checks.source.data.share_causes import batch_size_of, loader_at
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.arithmetic import is_scaled
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import end, start
from grader.model.call_site import Site
from grader.model.fix import Fix

_WORLD = "torch.distributed.get_world_size"
_ROUNDING = ("math.ceil", "math.floor", "int", "round")
_PRODUCT = (ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.Subscript)


def smaller_batch(script: Script, site: Site | None, factor: float, ranks: int) -> tuple[str, Fix | None]:
    """The batch size of a loader whose steps take `factor` times what they should, and its edits."""
    for node in batch_size_of(script, site):
        times = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
        if times and abs(factor / ranks**2 - 1) < 0.2:
            return _by_half(script, node, "//")  # type: ignore[arg-type]
    loader = loader_at(script, site)
    size = script.argument(loader, "batch_size") if loader is not None else None
    whole = round(factor)
    if (
        loader is None
        or not isinstance(size, ast.expr)
        or size is UNKNOWN
        or whole < 2
        or abs(factor / whole - 1) > 0.02
    ):
        return "", None
    edits = Edits(script)
    by_ranks = whole == ranks and not any(
        script.ranks.world(n) for n in script.values.closure(size) if isinstance(n, ast.expr)
    )
    divisor = f"{edits.name(_WORLD, loader)}()" if by_ranks else str(whole)
    plain = isinstance(size, _PRODUCT) or (
        isinstance(size, ast.BinOp) and isinstance(size.op, ast.Mult | ast.FloorDiv)
    )
    written = edits.text(size) if plain else f"({edits.text(size)})"
    edits.give(loader, "batch_size", f"{written} // {divisor}")
    return f"{written} // {divisor}", edits.fix("Gives each step the samples that it should take.")


def _by_half(script: Script, node: ast.BinOp, operator: str) -> tuple[str, Fix | None]:
    """`size * world` as `size // world`."""
    world, size = (node.left, node.right) if script.ranks.world(node.left) else (node.right, node.left)
    edits = Edits(script)
    text = f"{edits.text(size)} {operator} {edits.text(world)}"
    edits.replace(node, text)
    return text, edits.fix("Divides the batch among the ranks.")


def without_world(script: Script, nodes: Iterable[ast.AST]) -> tuple[str, Fix | None]:
    """Products and quotients with the number of ranks, without it: advice for all of them, and the edits."""
    edits, told = Edits(script), list[str]()
    for node in nodes:
        if is_scaled(node):
            kept_left = script.ranks.world(node.right) or isinstance(node.op, ast.Div)
            kept = node.left if kept_left else node.right
            told.append(f"write `{edits.text(kept)}` instead of {script.quote(node)} at {script.at(node)}")
            edits.replace(node, edits.text(kept))
        elif isinstance(node, ast.AugAssign) and script.ranks.world(node.value):
            told.append(f"leave {script.quote(node)} out at {script.at(node)}")
            edits.remove(node)
    advice = " and ".join(told)
    return advice[:1].upper() + advice[1:], edits.fix("Leaves the number of ranks out.")


def rate_once(script: Script, times: int) -> tuple[str, Fix | None]:
    """What to write where a learning rate was multiplied by the number of ranks so many times too often, the edits.

    "" where the text multiplies less often.
    """
    found = (n for n in rates_by_world(script) if isinstance(n, ast.AugAssign | ast.BinOp))
    nodes = sorted(dict.fromkeys(n for n in found if isinstance(n.op, ast.Mult)), key=start)
    return without_world(script, nodes[:times]) if len(nodes) >= times else ("", None)


def warm_up_in_steps(script: Script) -> tuple[str, Fix | None]:
    """A warm-up that is counted in samples, `len(loader.dataset)`, counted in the loader's batches."""
    for node in warm_up_lengths(script):
        for call in ast.walk(node):
            if not isinstance(call, ast.Call) or script.names.qualified(call.func) != "len" or not call.args:
                continue
            given = call.args[0]
            if isinstance(given, ast.Attribute) and given.attr == "dataset":
                edits = Edits(script)
                text = f"len({edits.text(given.value)})"
                edits.replace(call, text)
                return text, edits.fix("Counts the warm-up in steps.")
    return "", None


def length_of_share(script: Script, site: Site | None) -> tuple[list[ast.AST], str, Fix | None]:
    """Where the whole set counts the steps of a schedule, what its share's loader would count, and the edits."""
    counted = [call for call in lengths_of(script, site) if _of_training_set(script, call)]
    for call in counted:
        tree = script.names.tree(call)
        above, outer = tree.parent.get(call), None
        while isinstance(above, ast.BinOp):
            outer, above = above, tree.parent.get(above)
        division = _division(outer) if isinstance(outer, ast.BinOp) else None
        loader = _loader_of(division.right) if division is not None else ""
        if division is None or not loader or not isinstance(outer, ast.BinOp):
            continue
        edits = Edits(script)
        factor = next((f for f in _factors(outer, division) if call not in ast.walk(f)), None)
        text = f"{edits.text(factor)} * len({loader})" if factor is not None else f"len({loader})"
        edits.replace(outer, text)
        return [call], text, edits.fix("Counts the batches of the rank's own share.")
    return [*counted], "", None


def length_in_helper(script: Script, site: Site | None) -> tuple[list[ast.AST], str, Fix | None]:
    """The same where a helper divides a number of samples that it is given: its division and the count, the advice."""
    for call in [c for c in lengths_of(script, site) if _of_training_set(script, c)]:
        assert isinstance(call, ast.Call)
        for division in _divisions_of(script, site, call):
            outer, counted = _rounded(script, division), division.left
            if isinstance(counted, ast.UnaryOp):
                counted = counted.operand
            loader = _trained_before(script, call)
            if not loader or not isinstance(counted, ast.Name):
                return [division, call], "", None
            edits = Edits(script)
            edits.replace(call, f"len({loader})")
            edits.replace(outer, edits.text(counted))
            hint = (
                f"Count the loader's batches, which are those of the rank's share: hand on `len({loader})` in place of "
                f"{script.quote(call)} at {script.at(call)}, and write `{counted.id}` for {script.quote(outer)} at "
                f"{script.at(outer)}."
            )
            return [outer, call], hint, edits.fix("Counts the batches of the rank's own share.")
    return [], "", None


def _divisions_of(script: Script, site: Site | None, call: ast.Call) -> Iterable[ast.BinOp]:
    """Divisions on the way from a count to the length of a schedule."""
    for made in (c for _, c in script.calls_under("torch.optim.lr_scheduler.") if stands_at(script, c, site)):
        for given in arguments_of(made):
            for node in script.values.closure(given):
                divides = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.FloorDiv)
                if divides and call in script.values.closure(node.left):  # type: ignore[attr-defined]
                    yield node  # type: ignore[misc]


def _rounded(script: Script, division: ast.BinOp) -> ast.expr:
    """A division with what rounds it: `-(-n // size)`, `math.ceil(n / size)`."""
    tree = script.names.tree(division)
    above = tree.parent.get(division)
    minus = isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.USub)
    rounds = isinstance(above, ast.Call) and script.names.qualified(above.func) in _ROUNDING
    return above if (minus or rounds) and isinstance(above, ast.expr) else division


def _trained_before(script: Script, at: ast.AST) -> str:
    """The name of the one training loader that is made before a node, in the same function; "" where there is none."""
    tree = script.names.tree(at)
    names = set[str]()
    for loader in script.training.loaders():
        if script.names.tree(loader) is not tree or not script.training.roles(loader).trains:
            continue
        statement = tree.statement(loader)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        near = tree.scope(loader) is tree.scope(at) and end(loader) <= start(at)
        if (
            near
            and isinstance(target, ast.Name)
            and isinstance(statement, ast.Assign)
            and statement.value is loader
        ):
            names.add(target.id)
    return names.pop() if len(names) == 1 else ""


def _of_training_set(script: Script, call: ast.AST) -> bool:
    assert isinstance(call, ast.Call)
    held = set(script.values.origins(call.args[0])) if call.args else set()
    trained = (one for one in script.training.loaders() if script.training.roles(one).trains)
    datasets = [script.argument(loader, "dataset") for loader in trained]
    return any(isinstance(d, ast.expr) and held & set(script.values.origins(d)) for d in datasets)


def _division(outer: ast.BinOp) -> ast.BinOp | None:
    """The one division of a product: `epochs * len(set) // size`, `epochs * (len(set) // size)`."""
    found = [
        n for n in ast.walk(outer) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.FloorDiv | ast.Div)
    ]
    others = [
        n
        for n in ast.walk(outer)
        if isinstance(n, ast.BinOp) and not isinstance(n.op, ast.Mult | ast.FloorDiv | ast.Div)
    ]
    return found[0] if len(found) == 1 and not others else None


def _factors(outer: ast.BinOp, division: ast.BinOp) -> Iterable[ast.expr]:
    """What a product multiplies the number of batches by."""
    product = division.left if outer is division else outer
    if isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult):
        yield product.left
        yield product.right


def _loader_of(size: ast.expr) -> str:
    """The name of a loader whose batch size divides: `loader` of `loader.batch_size`."""
    if isinstance(size, ast.Attribute) and size.attr == "batch_size" and isinstance(size.value, ast.Name):
        return size.value.id
    return ""
