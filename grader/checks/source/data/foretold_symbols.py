"""Networks that foretell a text's next symbol: attention that sees it, and targets that are shifted twice.

Asked only where a score has shown that the network foretells something else. It answers with nodes and decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import chain

from grader.checks.source.causes import CauseInText
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import literal, name_of, walk

_ATTENTION = {
    "torch.nn.TransformerEncoder": ("mask", "is_causal"),
    "torch.nn.TransformerEncoderLayer": ("src_mask", "is_causal"),
    "torch.nn.MultiheadAttention": ("attn_mask", "is_causal"),
}
"""Modules that attend to all positions unless they are told otherwise, and by which arguments they are told."""
_FUNCTION = "torch.nn.functional.scaled_dot_product_attention"
_MASKING = (
    "tril",
    "triu",
    "generate_square_subsequent_mask",
    "masked_fill",
    "masked_fill_",
    "tril_",
    "triu_",
)
_LOSSES = ("cross_entropy", "nll_loss")


def foretold_symbols(script: Script) -> Iterable[CauseInText]:
    """What the text shows of them."""
    yield from chain(_shifted_twice(script), _unmasked(script))


def _unmasked(script: Script) -> Iterable[CauseInText]:
    """Attention without any mask in a script whose targets are the inputs, one later."""
    if any(script.called(name) for name in _MASKING) or not [*_pairs(script), *_shifted_in_losses(script)]:
        return
    calls = [call for tree in script.trees for call in tree.calls]
    for call in calls:
        for name, told in _ATTENTION.items():
            built = [o for o in script.values.origins(call.func) if isinstance(o, ast.Call)]
            if not any(script.names.qualified(o.func) == name for o in built):
                continue
            if not any(k.arg in told or k.arg is None for k in call.keywords) and len(call.args) == 1:
                written = f"{ast.unparse(call)[:-1]}, {told[0]}=mask, is_causal=True)"
                yield _sees_all(script, call, f"`{written}` with `mask = {_mask(script, call.args[0])}`")
        if script.names.qualified(call.func) == _FUNCTION:
            given = {k.arg for k in call.keywords}
            if not given & {"attn_mask", "is_causal", None} and len(call.args) == 3:
                yield _sees_all(script, call, f"`{ast.unparse(call)[:-1]}, is_causal=True)`")


def _mask(script: Script, given: ast.expr) -> str:
    x = ast.unparse(given)
    batch_first = any(k.arg == "batch_first" for t in script.trees for c in t.calls for k in c.keywords)
    length = f"{x}.shape[{int(batch_first)}]"
    return f"nn.Transformer.generate_square_subsequent_mask({length}, device={x}.device)"


def _sees_all(script: Script, call: ast.Call, written: str) -> CauseInText:
    return CauseInText(
        (call,),
        f"{script.at(call)} attends without a mask, {script.quote(call)}: each position sees the symbols behind it, "
        "among them the one that it has to foretell. The network learns to read it off, and knows nothing where the "
        "future is hidden.",
        f"Hide what comes later: {written}.",
    )


def _shifted_twice(script: Script) -> Iterable[CauseInText]:
    """A data set that gives each symbol its successor, and a loss that moves the targets on once more."""
    for pair in _pairs(script):
        for call in _shifted_in_losses(script):
            yield CauseInText(
                (call, pair),
                f"{script.at(call)} compares each position with the target of the next one, {script.quote(call)}, and "
                f"{script.at(pair)} has shifted the targets already, {script.quote(pair)}: the network learns to "
                "foretell the symbol after the next one.",
                "Shift once: compare logits and targets of the same position, "
                "`F.cross_entropy(logits.flatten(0, 1), targets.flatten())`, or leave the shift to the loss alone.",
            )


def _pairs(script: Script) -> Iterable[ast.Tuple]:
    """`tokens[i : i + n], tokens[i + 1 : i + n + 1]`."""
    for tree in script.trees:
        for node in walk(tree.root):
            if isinstance(node, ast.Tuple) and len(node.elts) == 2:
                one, other = (_piece(script, elt) for elt in node.elts)
                if one is not None and other is not None and _follows(one, other):
                    yield node


def _piece(script: Script, node: ast.expr) -> ast.Subscript | None:
    """The slice that a value is, also by its name or under a conversion."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        node = node.func.value
    if isinstance(node, ast.Name):
        made = script.values.origins(node)
        node = made[0] if len(made) == 1 and isinstance(made[0], ast.expr) else node
    sliced = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
    return node if sliced and isinstance(node, ast.Subscript) else None


def _follows(one: ast.Subscript, other: ast.Subscript) -> bool:
    if ast.unparse(one.value) != ast.unparse(other.value):
        return False
    first, second = (s.slice.lower for s in (one, other) if isinstance(s.slice, ast.Slice))
    if second is None:
        return False
    begins = "0" if first is None else ast.unparse(first)
    return ast.unparse(second) in (f"{begins} + 1", f"1 + {begins}") or (
        begins == "0" and literal(second) == 1
    )


def _shifted_in_losses(script: Script) -> Iterable[ast.Call]:
    """Cross entropies of `logits[:, :-1]` and `labels[:, 1:]`."""
    for tree in script.trees:
        for call in (c for c in tree.calls if name_of(c) in _LOSSES and len(c.args) > 1):
            function = tree.function(call)

            def parts(node: ast.expr, own: object = function) -> Iterable[ast.Slice]:
                for part in script.values.closure(node):
                    near = isinstance(part, ast.Subscript) and script.names.tree(part).function(part) is own
                    if near and isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Tuple):
                        yield from (s for s in part.slice.elts if isinstance(s, ast.Slice))

            cut = any(
                s.lower is None and s.upper is not None and literal(s.upper) == -1
                for s in parts(call.args[0])
            )
            moved = any(s.upper is None and literal(s.lower) == 1 for s in parts(call.args[1]) if s.lower)
            if cut and moved:
                yield call
