"""What in the text sets ranks' learning rates apart: the rank, a schedule that some advance, a value of a rank's own.

A value that went through a collective on its way is shared, and where the trail of one is lost, nothing is claimed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain

from grader.checks.source.causes import CauseInText, names_rank
from grader.checks.source.ranks.divergence import Divergence, RankDependence
from grader.checks.source.ranks.guard_fixes import out_of_test
from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import is_scaled
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import FUNCTIONS, literal, walk
from grader.checks.source.values.own_numbers import drawn_alike
from grader.model.fix import Fix

_SCHEDULES = "torch.optim.lr_scheduler."
ONE_RATE = (
    "Set the rate on every rank from the same numbers: the count of steps or epochs, or a value that all ranks have "
    "from one `dist.broadcast` or `dist.all_reduce`."
)
"""What is right for any script."""


def rates_apart(script: Script) -> Iterator[CauseInText]:
    """All of them, those that name the rank first; `says` tells what a line does with the rate."""
    return chain(_advanced_by_some(script), _made_of_the_rank(script), values_of_own(script))


def _advanced_by_some(script: Script) -> Iterator[CauseInText]:
    """Schedules that some ranks alone advance."""
    schedules = [call for _, call in script.calls_under(_SCHEDULES)]
    for call in script.called("step"):
        if not isinstance(call.func, ast.Attribute) or script.guards.partial(call) is None:
            continue
        if any(o is made for o in script.values.origins(call.func.value) for made in schedules):
            yield CauseInText(
                (call,),
                f"{script.at(call)} advances the schedule on some ranks only.",
                f"Take {script.quote(call)} at {script.at(call)} out of the test of the rank: each rank has a "
                "schedule of its own, and all of them must move on.",
                out_of_test(script, call, "Moves the schedule on on every rank."),
            )


def _made_of_the_rank(script: Script) -> Iterator[CauseInText]:
    """Arguments of schedules and optimizers, and rates set by hand, with the rank in them."""
    yield from options_of_the_rank(script)
    yield from (_of_the_rank(script, value) for _, value in set_by_hand(script) if names_rank(script, value))


def options_of_the_rank(script: Script, only: str = "") -> Iterator[CauseInText]:
    """Arguments of schedules and optimizers that are made of the rank, in the call or where a name got its value.

    Args:
        only: the name of an argument; empty for all.
    """
    for _, call in script.calls_under("torch.optim."):
        given = [("", a) for a in call.args] + [(k.arg or "", k.value) for k in call.keywords]
        for number, (name, value) in enumerate(given):
            if only and name != only:
                continue
            made = [o for o in script.values.origins(value) if isinstance(o, ast.BinOp | ast.IfExp)]
            told = [o for o in made if (number or name) and name != "params" and names_rank(script, o)]
            if told:
                yield from (_of_the_rank(script, o, name) for o in told)
            elif names_rank(script, value):
                yield _of_the_rank(script, value, name)


def setting_of_the_rank(script: Script, name: str) -> CauseInText:
    """What makes an optimizer's setting of the rank; without a line where the text does not show it."""
    return next(options_of_the_rank(script, name), None) or CauseInText(
        (),
        "",
        f"Give the optimizer of every rank the same `{name}`: a number that does not depend on the rank.",
    )


def _of_the_rank(script: Script, given: ast.expr, option: str = "") -> CauseInText:
    what = "rate" if "lr" in option or not option else f"`{option}`"
    made = "it" if what == "rate" else what
    count = isinstance(given, ast.BinOp) and isinstance(given.op, ast.Mult | ast.Div)
    world = " Where the number of ranks is meant, write `dist.get_world_size()`." if count else ""
    return CauseInText(
        (given,),
        f"{script.at(given)} makes {made} of the rank: {script.quote(given)}.",
        f"Give every rank one {what}: take the rank out of {script.quote(given)} at {script.at(given)}.{world}",
        _without_rank(script, given, what),
    )


def values_of_own(script: Script) -> Iterator[CauseInText]:
    """Rates made of a clock, of a rank's own samples, or of what some ranks alone have set; or set on some alone."""
    divergence = Divergence(script)
    for setter, value in set_by_hand(script):
        guard = script.guards.partial(setter)
        tests = _tests_around(script, setter)
        apart = next((a for node in (value, *tests) if (a := divergence.of(node)) is not None), None)
        if guard is not None and guard.condition.sure and not script.guards.alone(setter):
            yield _on_some_ranks(script, setter, guard.test)
        elif apart is not None:
            yield _of_own(script, setter, apart)
    for setter, value in rates_given(script):
        apart = divergence.of(value)
        if apart is not None:
            yield _of_own(script, setter, apart)


def rates_under_tests(script: Script) -> Iterator[CauseInText]:
    """Rates that are set by hand under a test, for where a run has shown that ranks differ and nothing else tells why.

    What such a test asks is named, with the places where that is stored.
    """
    for setter, _ in set_by_hand(script):
        test = next(_tests_around(script, setter), None)
        if test is None:
            continue
        names = {n.attr for n in walk(test) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
        found = (d for tree in script.trees for name in sorted(names) for d in tree.attributes.get(name, ()))
        stored = [d.node for d in found if d.value is not None and _worked_out(script, d.value, names)][:2]
        asks = f" What it asks is stored at {' and '.join(map(script.at, stored))}." if stored else ""
        yield CauseInText(
            (setter, test, *stored),
            f"{script.at(setter)} sets the rate where {script.quote(test)} holds, which did not hold on all ranks "
            f"alike.{asks}",
            "Let the test ask a number that all ranks share: sum it up over the ranks first, with `dist.all_reduce` of "
            "the sum and of the count, and divide then; or let rank 0 decide and `dist.broadcast` the rate.",
        )


def _worked_out(script: Script, value: ast.expr, names: set[str]) -> bool:
    """Whether a value is made of more than constants and what a test reads: not `min(self.best, self.loss)`."""
    made_of = [n for n in walk(value) if isinstance(n, ast.Name) and script.names.qualified(n) is None]
    return bool(made_of) and not any(isinstance(n, ast.Attribute) and n.attr in names for n in walk(value))


def _on_some_ranks(script: Script, setter: ast.AST, test: ast.AST) -> CauseInText:
    return CauseInText(
        (setter, test),
        f"{script.at(setter)} sets the rate on some ranks only.",
        f"Take {script.quote(setter)} at {script.at(setter)} out of the test {script.quote(test)}: every rank steps "
        "with the rate of its own optimizer.",
    )


def _of_own(script: Script, setter: ast.AST, apart: RankDependence) -> CauseInText:
    line, source = script.at(setter), script.at(apart.node)
    match apart.kind:
        case "clock":
            says = f"this rank's own clock, {script.quote(apart.node)} at {source}."
            hint = (
                f"Let the rate at {line} depend on what all ranks count alike, the steps or the epochs. Where it has "
                "to follow the time, rank 0 alone reads the clock: put its reading into a tensor, "
                "`dist.broadcast(elapsed, src=0)`, and set the rate of every rank by `elapsed.item()`."
            )
        case "batch":
            says = f"what each rank works out from its own share of the data ({source})."
            hint = (
                "Set the rate by a number that all ranks share: `dist.all_reduce` the value, divide it by the number "
                f"of ranks, and use the result at {line}."
            )
        case "draw":
            says = (
                f"the draw {script.quote(apart.node)} at {source}, which comes out differently on each rank."
            )
            hint = drawn_alike(script, apart.node)
        case _:
            says = f"what {source} gives to some ranks only."
            hint = (
                f"Set the rate at {line} by a number that all ranks have: give it on every rank, or `dist.broadcast` "
                "it from the rank that knows it."
            )
    return CauseInText((setter, apart.node), f"{line} sets the rate by {says}", hint)


def _tests_around(script: Script, node: ast.AST) -> Iterator[ast.expr]:
    """Tests that a place of a function stands under."""
    tree = script.names.tree(node)
    child, above = node, tree.parent.get(node)
    while above is not None and not isinstance(child, FUNCTIONS):
        if isinstance(above, ast.If) and child is not above.test:
            yield above.test
        child, above = above, tree.parent.get(above)


def set_by_hand(script: Script) -> Iterator[tuple[ast.AST, ast.expr]]:
    """`group["lr"] = …` and `group.update(lr=…)` of optimizers' groups, each with what is set."""
    for tree in script.trees:
        for node in walk(tree.root):
            if isinstance(node, ast.Assign | ast.AugAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(_is_rate(script, target) for target in targets):
                    yield node, node.value
    for call in script.called("update"):
        if isinstance(call.func, ast.Attribute) and _is_group(script, call.func.value):
            yield from ((call, k.value) for k in call.keywords if k.arg == "lr")


def _is_rate(script: Script, target: ast.expr) -> bool:
    held = isinstance(target, ast.Subscript) and literal(target.slice) == "lr"
    return held and isinstance(target, ast.Subscript) and _is_group(script, target.value)


def _is_group(script: Script, node: ast.expr) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "param_groups" for n in script.values.closure(node))


def rates_given(script: Script) -> Iterator[tuple[ast.AST, ast.expr]]:
    """What optimizers' rates and schedules are made of; of a function that a schedule is given, what it returns."""
    for name, call in script.calls_under("torch.optim."):
        if not name.startswith(_SCHEDULES):
            rate = script.argument(call, "lr")
            yield from [(call, rate)] if isinstance(rate, ast.expr) else []
            continue
        for given in (*call.args[1:], *(k.value for k in call.keywords if k.arg != "optimizer")):
            function = script.graph.definition(given)
            if isinstance(function, FUNCTIONS):
                returned = script.names.tree(function).returns.get(function, ())
                yield from ((call, r.value) for r in returned if r.value is not None)
            origins = script.values.origins(given)
            yield from ((call, o.body) for o in origins if isinstance(o, ast.Lambda))
            yield call, given


def _without_rank(script: Script, rate: ast.expr, what: str) -> Fix | None:
    """`lr * (rank + 1)` without the factor that is made of the rank."""
    if not is_scaled(rate):
        return None
    kept = [side for side in (rate.left, rate.right) if not names_rank(script, side)]
    if len(kept) != 1 or (isinstance(rate.op, ast.Div) and kept[0] is rate.right):
        return None
    edits = Edits(script)
    edits.replace(rate, edits.text(kept[0]))
    return edits.fix(f"Gives every rank the same {what}.")
