"""Models that are sharded over a mesh of too few ranks, sharded over all of them.

A mesh of two dimensions has copies along the first and shards along the second: sizes in the other order shard nothing.
"""

from __future__ import annotations

import ast

from grader.checks.source.calls.arguments import keyword_value
from grader.checks.source.causes import sharding_meshes
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import DISPLAYS, name_of
from grader.model.fix import Fix


def without_mesh(script: Script) -> tuple[ast.AST | None, Fix | None]:
    """What makes the mesh, and the edits that leave it out of every `fully_shard`: all ranks are its default."""
    found = list(sharding_meshes(script))
    meshes = [node for node in found if name_of(node) != "fully_shard"]
    calls = [node for node in found if isinstance(node, ast.Call) and name_of(node) == "fully_shard"]
    if not meshes or not calls:
        return None, None
    edits = Edits(script)
    for call in dict.fromkeys(calls):
        edits.take_away(call, "mesh", "None")
    return meshes[0], edits.fix("Shards over all ranks.")


def turned_mesh(script: Script) -> tuple[ast.Tuple | ast.List | None, str, Fix | None]:
    """The sizes of a mesh whose ranks hold wholes, as a run has shown, what to write in their place, and the edits."""
    for mesh in sharding_meshes(script):
        shape = mesh_shape(script, mesh)
        if shape is None or len(shape.elts) != 2 or script.values.constant(shape.elts[0]) == 1:
            continue
        if script.values.constant(shape.elts[1]) not in (1, UNKNOWN) or script.ranks.world(shape.elts[1]):
            continue
        edits = Edits(script)
        text = f"({edits.text(shape.elts[1])}, {edits.text(shape.elts[0])})"
        edits.replace(shape, text)
        return shape, text, edits.fix("Shards over the ranks that were to hold copies.")
    return None, "", None


def mesh_shape(script: Script, mesh: ast.AST) -> ast.Tuple | ast.List | None:
    """The display of sizes that `init_device_mesh` is given, wherever it was made; None where there is no such one."""
    if not isinstance(mesh, ast.Call) or name_of(mesh) != "init_device_mesh":
        return None
    given = keyword_value(mesh, "mesh_shape")
    if given is None and len(mesh.args) > 1:
        given = mesh.args[1]
    made = [o for o in script.values.origins(given) if isinstance(o, DISPLAYS)] if given is not None else []
    return made[0] if len(made) == 1 and isinstance(made[0], ast.Tuple | ast.List) else None
