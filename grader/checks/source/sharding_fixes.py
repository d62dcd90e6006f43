"""Models that are sharded over a mesh of too few ranks, sharded over all of them."""

from __future__ import annotations

import ast

from grader.checks.source.causes import sharding_meshes
from grader.checks.source.edits import Edits
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import name_of
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
