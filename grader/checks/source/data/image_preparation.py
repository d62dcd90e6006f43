"""Where a script turns stored images into the numbers that its network reads, as far as the text shows it.

Finds the places and, where they are written out, the numbers that black and white become. Which of them is right is the
task's to say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import QUOTIENTS, is_quotient
from grader.checks.source.syntax.nodes import DISPLAYS, VARIABLES, literal, name_of
from grader.checks.source.values.data_flow import all_parts

_TRANSFORMS = ("torchvision.transforms.", "torchvision.transforms.v2.")
_NORMALISING = {
    f"{package}{name}": first
    for package in _TRANSFORMS
    for name, first in (("Normalize", 0), ("functional.normalize", 1))
}
"""Calls that take off a mean and divide by a deviation → position of the mean among their arguments."""
_CONVERTING = {
    f"{package}{name}"
    for package in _TRANSFORMS
    for name in (
        "ToTensor", "PILToTensor", "ConvertImageDtype", "ToDtype", "ToImage", "functional.to_tensor",
        "functional.pil_to_tensor", "functional.convert_image_dtype", "functional.to_dtype",
    )
}  # fmt: skip
_MEANS = ("mean", "average", "std_mean", "var_mean")
_DEVIATIONS = ("std", "var", "std_mean", "var_mean")
_ALIKE = 0.02
_FLOATS = ("float", "float32")
_IMAGES = ("data", "image", "images", "img", "imgs", "inputs", "x", "xs")


@dataclass(frozen=True, slots=True)
class Preparation:
    """One place.

    Attributes:
        node: the call or expression.
        is_transform: True for a call of torchvision's transforms, False for arithmetic on tensors.
        black, white: what pixels of 0 and 1 become there; None where it is not written out.
        computed: the mean and the deviation, where the script works them out from samples.
    """

    node: ast.AST
    is_transform: bool
    black: float | None = None
    white: float | None = None
    computed: tuple[ast.expr, ...] = ()

    def same(self, black: float | None, white: float | None) -> bool:
        """Whether pixels become these numbers here; False where that is not written out, or not known."""
        if self.black is None or self.white is None or black is None or white is None:
            return False
        return abs(self.black - black) + abs(self.white - white) < _ALIKE * abs(white - black)


def prepares_as(script: Script, black: float | None, white: float | None) -> bool:
    """Whether the text writes this very range out, and no other one."""
    told = [one for one in preparations(script) if one.black is not None or one.computed]
    return bool(told) and all(one.same(black, white) for one in told)


def preparations(script: Script) -> tuple[Preparation, ...]:
    """All such places: those that normalise first, then conversions to tensors, then divisions by 255."""
    return (*_normalised(script), *_standardised(script), *_converted(script), *_divided(script))


def _normalised(script: Script) -> Iterator[Preparation]:
    for name, first in _NORMALISING.items():
        for call in script.calls(name):
            given = {keyword.arg: keyword.value for keyword in call.keywords}
            means, deviations = (
                given.get(word) or (call.args[place] if len(call.args) > place else None)
                for word, place in (("mean", first), ("std", first + 1))
            )
            mean, deviation = _number(script, means), _number(script, deviations)
            if mean is not None and deviation:
                yield Preparation(call, True, -mean / deviation, (1 - mean) / deviation)
            else:
                told = tuple(n for n in (means, deviations) if n is not None)
                yield Preparation(call, True, computed=told if any(_counts(script, n) for n in told) else ())


def _standardised(script: Script) -> Iterator[Preparation]:
    """`(images - mean) / deviation` by numbers that the script works out."""
    for tree in script.trees:
        for node in ast.walk(tree.root):
            if not is_quotient(node):
                continue
            less = node.left
            if not isinstance(less, ast.BinOp) or not isinstance(less.op, ast.Sub):
                continue
            told = (less.right, node.right)
            images = any(
                isinstance(n, VARIABLES) and name_of(n).lower() in _IMAGES for n in ast.walk(less.left)
            )
            if images and _counts(script, told[0], _MEANS) and _counts(script, told[1], _DEVIATIONS):
                yield Preparation(node, False, computed=told)


def _counts(script: Script, number: ast.expr, by: tuple[str, ...] = (*_MEANS, *_DEVIATIONS, "sum")) -> bool:
    """Whether a number is worked out from samples."""
    return any(isinstance(n, ast.Call) and name_of(n) in by for n in all_parts(script, number))


def _converted(script: Script) -> Iterator[Preparation]:
    for name in sorted(_CONVERTING):
        for call in script.calls(name):
            yield Preparation(call, True)


def _divided(script: Script) -> Iterator[Preparation]:
    for tree in script.trees:
        for node in ast.walk(tree.root):
            if is_quotient(node) and literal(node.right) == 255:
                yield Preparation(node, False)
    for call in script.called(*QUOTIENTS):
        if call.args and literal(call.args[0]) == 255:
            yield Preparation(call, False)
    for call in script.called("float", "to", "type", "astype"):
        whole = name_of(call) == "float" or any(
            (script.names.qualified(given) or "").rpartition(".")[2] in _FLOATS for given in call.args
        )
        if whole and isinstance(call.func, ast.Attribute) and _of_images(call.func.value):
            yield Preparation(call, False)


def _of_images(node: ast.expr) -> bool:
    """Whether a value is called as images are, or is what a method such as `unsqueeze` makes of one."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return isinstance(node, VARIABLES) and name_of(node).lower() in _IMAGES


def _number(script: Script, node: ast.expr | None) -> float | None:
    """The number, or the first of several, that an expression writes out."""
    for origin in script.values.origins(node) if node is not None else ():
        one = origin.elts[0] if isinstance(origin, DISPLAYS) and origin.elts else origin
        if is_quotient(one):
            above, below = literal(one.left), literal(one.right)
            if isinstance(above, int | float) and isinstance(below, int | float) and below:
                return above / below
        value = literal(one)
        if isinstance(value, int | float):
            return float(value)
    return None
