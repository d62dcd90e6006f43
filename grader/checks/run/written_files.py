"""Checkpoints and result files that ranks wrote: who, where, how, and whether their process group was still there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from grader.checks.evidence import Evidence
from grader.model.call_site import Site
from grader.model.checkpoint_save import Save
from grader.model.trace import RankTrace

METRICS = "metrics.json"
_SUFFIXES = (".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".npz", ".npy", ".pkl", ".pickle")


@dataclass(frozen=True, slots=True)
class Write:
    """A rank's first write of a file.

    Attributes:
        site: the line. whole: the file came to its name as a whole, by renaming another.
        destroyed: where the rank had taken its process group down before; None where it had not.
    """

    site: Site | None
    whole: bool
    destroyed: Site | None


def writers(evidence: Evidence) -> dict[str, dict[int, Write]]:
    """Path → rank → write, for checkpoints and the metrics file; collective saves are right on all ranks."""
    found: dict[str, dict[int, Write]] = {}
    collective = {s.path for r in evidence.trace.ranks for s in r.saves if s.api == "dcp"}
    for rank in evidence.trace.ranks:
        for save in rank.saves:
            if save.api != "dcp" and save.path:
                write = Write(save.site, False, _destroyed(rank, save.t))
                found.setdefault(save.path, {}).setdefault(rank.rank, write)
        for file in rank.files:
            inside = any(file.path.startswith(c) for c in collective if c)
            kept = file.out and file.op in ("open", "rename") and not inside
            if kept and (file.path.endswith(_SUFFIXES) or file.path == METRICS):
                write = Write(file.site, file.op == "rename", _destroyed(rank, file.t))
                found.setdefault(file.path, {}).setdefault(rank.rank, write)
    return found


def clash(found: Mapping[int, Write]) -> str:
    """What becomes of a file that several ranks write, after the line that does so."""
    if all(write.whole for write in found.values()):
        return (
            "puts a file of its own in its place on every rank: the last one decides what is in it, and the others "
            "were written for nothing."
        )
    return (
        "saves on every rank: they overwrite each other's bytes, and a file that is read or cut off in between is "
        "broken."
    )


def copies(evidence: Evidence) -> list[tuple[int, Save]]:
    """The same model written by several ranks under different names: (rank, save), the first of each rank."""
    found: list[tuple[int, Save]] = []
    for rank in evidence.trace.ranks:
        save = next((s for s in rank.saves if s.out and s.api != "dcp" and _is_model(rank, s)), None)
        found += [(rank.rank, save)] if save else []
    same = [pair for pair in found if pair[1].num_tensors == found[0][1].num_tensors]
    return same if len(same) > 1 else []


def _is_model(rank: RankTrace, save: Save) -> bool:
    """True for a whole model, not for a rank's own state of generators or loaders."""
    return save.num_tensors > 0 and save.num_tensors >= max((w.num_tensors for w in rank.wraps), default=1)


def _destroyed(rank: RankTrace, t: float) -> Site | None:
    """Where a rank's group was taken down for the last time before a moment, if it had none then."""
    last = next((g for g in reversed(rank.groups) if g.op in ("init", "destroy") and g.t < t), None)
    return last.site if last is not None and last.op == "destroy" else None
