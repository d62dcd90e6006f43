"""Where a script uses what a loop counted over one rank's share as if all ranks had counted it together."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.calls.missing_modules import may_reduce
from grader.checks.source.files.rank_files import read_by_one
from grader.checks.source.metrics.summed_tensors import TELLING, told_ratios
from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import is_quotient
from grader.checks.source.syntax.nodes import end, name_of, start, walk
from grader.checks.source.training_loops import Draw

_OWN_PART = re.compile(
    r"\b(local|own|this|my|shard|share|part|partial|subset|rank|gpu|device)\b", re.IGNORECASE
)

_RATE = re.compile(
    r"(image|img|sample|example|token|item)\w{0,20}\s{0,5}(/|per)\s{0,5}s|throughput", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Unreduced:
    """A use of counts as they are.

    Attributes:
        use: the statement. later: the call further down that brings them together, None where nothing does.
    """

    use: ast.stmt
    later: ast.Call | None = None


def unreduced(script: Script, draw: Draw, counted: set[str]) -> Unreduced | None:
    """Where a loop's counts are used as they are; None where they are brought together before, or may be."""
    use = script.reductions.first_use(draw, counted)
    if use is None or _keeps_own_books(script) or may_reduce(script, draw.loop, counted):
        return None
    if script.reductions.reduced(draw, counted):
        return _said_before(script, draw, counted)
    if any(script.ranks.shows_rank(n) for n in walk(use)) or _brought_on_disk(script, draw, counted):
        return None
    return Unreduced(use)


def share_as_whole(script: Script, draw: Draw, counted: set[str]) -> Unreduced | None:
    """A figure of training that is meant for all ranks.

    It is over the length of the whole set, or per second, or the ratio of sums that one tensor holds for all ranks.
    """
    if _keeps_own_books(script) or may_reduce(script, draw.loop, counted):
        return None
    for ratio, telling in told_ratios(script, draw):
        said = [n for part in (ratio, *telling) for n in walk(part) if isinstance(n, ast.expr)]
        if not _of_own_part(script, said) and not _brought_on_disk(script, draw, counted):
            return Unreduced(ratio)
    if script.reductions.reduced(draw, counted):
        return None
    tree = script.names.tree(draw.loop)
    scope = tree.scope(draw.loop)
    read = [n for name in counted for n in tree.loads.get(name, ()) if tree.scope(n) is scope]
    for load in sorted((n for n in read if start(n) > end(draw.loop)), key=start):
        use = tree.statement(load)
        told = [n for n in walk(use) if isinstance(n, ast.expr)]
        if _of_own_part(script, told) or any(script.ranks.world(n) for n in told):
            continue
        if _over_whole(script, draw, load) or _per_second(script, use, load):
            return Unreduced(use)
    return None


def _over_whole(script: Script, draw: Draw, load: ast.Name) -> bool:
    """Whether a count is divided by the length of what a sampler deals out to all ranks."""
    above = script.names.tree(load).parent.get(load)
    length = above.right if is_quotient(above) else None
    if not isinstance(length, ast.Call) or script.names.qualified(length.func) != "len" or not length.args:
        return False
    samplers = (s for loader in draw.loaders for s in script.training.distributed_samplers(loader))
    dealt = [d for s in samplers if (d := script.argument(s, "dataset")) is not None]
    same = {o for d in dealt for o in script.values.origins(d)} & set(script.values.origins(length.args[0]))
    return bool(same) or ast.unparse(length.args[0]) in map(ast.unparse, dealt)


def _per_second(script: Script, use: ast.stmt, load: ast.Name) -> bool:
    """Whether a count over a time is said by one rank, by words that mean all of them."""
    ratios = [n for n in walk(use) if is_quotient(n)]
    timed = any(
        load in walk(ratio.left)
        and any(
            (script.names.qualified(n) or "").startswith("time.") for n in script.values.closure(ratio.right)
        )
        for ratio in ratios
    )
    texts = " ".join(n.value for n in walk(use) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return timed and script.guards.partial(use) is not None and bool(_RATE.search(texts))


def _said_before(script: Script, draw: Draw, counted: set[str]) -> Unreduced | None:
    """What one rank says of the counts while they are still its own, above the reduction that comes later."""
    later = script.reductions.reducing_after(draw)
    if not later:
        return None
    tree = script.names.tree(draw.loop)
    scope = tree.scope(draw.loop)
    for call in tree.called(*TELLING):
        between = end(draw.loop) < start(call) < start(later[0])
        if not between or tree.scope(call) is not scope or script.guards.partial(call) is None:
            continue
        told = arguments_of(call)
        if script.reductions.made_of(draw, counted, told) and not _of_own_part(script, told):
            return Unreduced(tree.statement(call), later[0])
    return None


def _of_own_part(script: Script, told: list[ast.expr]) -> bool:
    """Whether a line says that it is one rank's figure."""
    nodes = [n for value in told for n in walk(value)]
    texts = (n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))
    names = (name_of(n).replace("_", " ") for n in nodes if isinstance(n, ast.Name | ast.Attribute))
    return any(_OWN_PART.search(t) for t in (*texts, *names)) or any(
        script.ranks.shows_rank(n) for n in nodes
    )


def _brought_on_disk(script: Script, draw: Draw, counted: set[str]) -> bool:
    for write in read_by_one(script):
        statement = script.names.tree(write).statement(write)
        given = [n for n in walk(statement) if isinstance(n, ast.Name)]
        if script.reductions.made_of(draw, counted, given):
            return True
    return False


def _keeps_own_books(script: Script) -> bool:
    """Metric libraries that reduce over ranks when their result is asked for."""
    return bool(script.calls_given("num_process")) or any(
        i.split(".")[0] in ("torchmetrics", "torcheval") for t in script.trees for i in t.imports
    )
