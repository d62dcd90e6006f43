"""What a task asks of the optimisation, from its file's `[expected]` table: learning rate, warm-up, global batch.

Says to the author where keys of the table don't make sense together; whether a script does what is asked is the rules'
matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grader.catalog.formats.toml_lines import Key
from grader.model.task import Expected

if TYPE_CHECKING:
    # Not for real: pydantic takes its time, and `grader lint` starts without it.
    from grader.catalog.tasks.task_schema import ExpectedTable

_BASES = ("base_learning_rate", "base_batch_size")


def expected(table: ExpectedTable) -> Expected:
    """The table as the rules read it."""
    return Expected(
        base_learning_rate=table.base_learning_rate,
        base_batch_size=table.base_batch_size,
        scaling=tuple(table.scaling),
        warmup=table.warmup,
        global_batch_size=table.global_batch_size,
        new_shares=table.new_shares,
        sharded=table.sharded,
    )


def problems(raw: object) -> list[tuple[Key, str]]:
    """What is wrong with the raw table beyond its shape: (key, what to write)."""
    if not isinstance(raw, dict):
        return []
    table: dict[str, Any] = raw
    found: list[tuple[Key, str]] = []
    scaling = table.get("scaling")
    if scaling:
        for name in _BASES:
            if name not in table:
                text = (
                    f"expected.scaling: says how the learning rate follows the batch, but not from where; add "
                    f"`{name}`, that of the single-process script."
                )
                found.append((("expected", "scaling"), text))
        if isinstance(scaling, list) and len(scaling) != len({str(s) for s in scaling}):
            found.append((("expected", "scaling"), "expected.scaling: names a rule twice; name each once."))
    else:
        for name in _BASES:
            if name in table:
                text = (
                    f"expected.{name}: nothing is compared with it without `scaling`; add "
                    '`scaling = ["linear"]` or remove it.'
                )
                found.append((("expected", name), text))
    return found
