"""What a task file says of how scripts are started and how far they may go, beyond what its shape tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grader.catalog.formats.problems import spelled
from grader.catalog.formats.toml_lines import Key
from grader.model.launch_arguments import NAMES_IN_BRACES, unknown_names
from grader.model.task import Limits

if TYPE_CHECKING:
    from grader.catalog.tasks.task_schema import LimitsTable, ProfileTable

_ALONE = 'with `launcher = "python"` a script runs on one node; write 1, or let torchrun start the ranks.'


def problems(raw: dict[str, Any]) -> list[tuple[Key, str]]:
    """What is wrong with `[launch]` and the profiles: (key, what to write)."""
    tables: dict[Key, Any] = {("launch",): raw.get("launch")}
    profiles = raw.get("profiles")
    tables |= (
        {("profiles", name): table for name, table in profiles.items()} if isinstance(profiles, dict) else {}
    )
    launch = raw.get("launch")
    alone = isinstance(launch, dict) and launch.get("launcher") == "python"
    found: list[tuple[Key, str]] = []
    for place, table in tables.items():
        if not isinstance(table, dict):
            continue
        nnodes, key = table.get("nnodes"), (*place, "nnodes")
        if alone and isinstance(nnodes, int) and nnodes > 1:
            found.append((key, f"{spelled(key)}: {_ALONE}"))
        key = (*place, "arguments")
        arguments = table.get("arguments")
        strange = unknown_names("\n".join(map(str, arguments))) if isinstance(arguments, list) else []
        found += [
            (key, f"{spelled(key)}: {one} stands for nothing; there are {', '.join(NAMES_IN_BRACES)}.")
            for one in strange
        ]
    return found


def limits_of(table: ProfileTable, common: LimitsTable) -> Limits:
    """Limits of a run on a profile: its own, and what all have in common."""
    own = table.limits
    return Limits(
        wall_s=own.wall_s or common.wall_s,
        memory_bytes=(own.memory_mib or common.memory_mib) << 20,
        output_bytes=(own.output_mib or common.output_mib) << 20,
        log_bytes=(own.log_mib or common.log_mib) << 20,
    )
