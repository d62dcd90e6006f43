"""Broadcasts between a training loader and the model: what they send takes the place of each rank's own batch.

Asked only where a run has shown that models on all ranks are given the same; it says where, and decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.calls.ways import ways_to
from grader.checks.source.script import Script

_SENDING = ("broadcast", "broadcast_object_list", "broadcast_tensors", "sync_batch")
_OF_MODELS = {"parameters", "named_parameters", "buffers", "named_buffers", "state_dict", "grad"}


def broadcast_batches(script: Script) -> Iterator[ast.Call]:
    """Broadcasts that a round of a training loop makes before it goes backward, but for those of the model's own."""
    for draw in (d for d in script.training.draws if d.trains):
        tree = script.names.tree(draw.loop)
        trains = (n for n, one in enumerate(draw.loop.body) if script.training.runs_backward(one))
        before = draw.loop.body[: next(trains, -1) + 1]
        for call in script.called(*_SENDING):
            if any(getattr(n, "attr", "") in _OF_MODELS for a in call.args for n in script.values.closure(a)):
                continue
            ways = ways_to(script.names, script.graph, call)
            if any(script.names.tree(w) is tree and tree.inside(w, one) for w in ways for one in before):
                yield call
