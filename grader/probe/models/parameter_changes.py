"""Whether the module inside DDP is still the one that was wrapped.

DDP prepares the parameters that it finds when it wraps; those that come later are never averaged. Reads names and ids
only, and tells it once.
"""

from __future__ import annotations

from grader.probe.hooks.patches import guarded
from grader.probe.models.tracked_models import TrackedModel
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_MAX_NAMES = 8


def report_parameter_changes(known: list[TrackedModel]) -> None:
    """Tell of modules inside DDP whose parameters are no longer those that DDP was given."""
    for one in known:
        if one.held:
            _compare(one)


@guarded("structure")
def _compare(known: TrackedModel) -> None:
    model = known.model()
    if model is None:
        return
    ignored = getattr(model, "_ddp_params_and_buffers_to_ignore", ())
    current = list(model.named_parameters())
    frozen = [name for name, p in current if id(p) in known.held and not p.requires_grad]
    added = [
        name
        for name, p in current
        if p.requires_grad and p.grad is not None and id(p) not in known.held and name not in ignored
    ]
    thawed = [name for name, p in current if name in added and id(p) in known.frozen]
    removed = len(known.held.keys() - {id(p) for _, p in current})
    if frozen or added or removed:
        known.held = {}  # once is enough
        writer.write(
            events.CHANGED,
            wrap=known.wrap,
            added=added[:_MAX_NAMES],
            frozen=frozen[:_MAX_NAMES],
            thawed=thawed[:_MAX_NAMES],
            removed=removed,
        )
