"""From one decoded event to the frozen record of its kind.

One function per kind that has a record of its own; the rest stays an `Event`. Knows nothing of other events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.model import drawn_data
from grader.model import trace as model
from grader.model.checkpoint_save import Save
from grader.model.file_write import FileWrite
from grader.model.line_change import LineChange, Sums
from grader.model.traffic import Traffic
from grader.probe.trace import events
from grader.run.trace_fields import Fields, plain

_GENERIC = frozenset({
    events.UNSUPPORTED, events.BYPASS, events.EVALUATED, events.EVALUATION, events.MESH, events.PARALLEL,
    events.PLACED, events.GATHERED, events.CHANGED, events.COMM_HOOK, events.TRAINED_IN_EVALUATION, events.UNHELD,
    events.NO_SYNC, events.BACKWARD, events.CROSS_ENTROPIES, events.SETTINGS, events.HELD, events.UNSTEPPED,
    events.MOVED, events.CAPTURED, events.LOAD, events.DOWNLOAD, events.PROCESS, events.REACH,
    events.LR_SCHEDULER, events.IDLE_SCHEDULE, events.PLATEAU, events.RANDOM, events.SEEDED,
    events.EXCEPTION, events.END,
})  # fmt: skip


def start(f: Fields) -> model.Start:
    """START."""
    return model.Start(
        torch=f.text("torch"),
        python=f.text("python"),
        rank=f.whole("rank"),
        local_rank=f.whole("local_rank"),
        world_size=f.whole("world_size", 1),
        pid=f.whole("pid", 1),
        seed=f.whole("seed", -(1 << 53)),
    )


def group(f: Fields, t: float) -> model.Group:
    """GROUP."""
    return model.Group(
        op=f.text("op"),
        backend=f.text("backend"),
        rank=f.whole("rank", -1),
        world_size=f.whole("world_size"),
        timeout_s=f.maybe("timeout_s", f.real),
        sequence=f.maybe("sequence", f.whole),
        site=f.site(),
        t=t,
    )


def collective(f: Fields, t: float) -> model.Collective:
    """COLLECTIVE."""
    return model.Collective(
        name=f.text("name"),
        site=f.site(),
        n=f.whole("n"),
        numel=f.maybe("numel", f.whole),
        reduce_op=f.text("reduce_op"),
        t=t,
        seconds=f.maybe("seconds", f.real),
        named=f.maybe("named", f.flag) is not False,
        ranks=f.maybe("ranks", f.wholes),
        forward=f.maybe("forward", f.flag) or False,
        backward=f.maybe("backward", f.flag) or False,
        differentiated=f.maybe("differentiated", f.flag) or False,
    )


def wrap(f: Fields, t: float) -> model.Wrap:
    """WRAP."""
    return model.Wrap(
        id=f.whole("id"),
        kind=f.text("kind"),
        site=f.site(),
        module=f.text("module"),
        num_params=f.whole("num_params"),
        num_tensors=f.whole("num_tensors"),
        gradient_bytes=f.whole("gradient_bytes"),
        num_buffers=f.whole("num_buffers"),
        num_batchnorm=f.whole("num_batchnorm"),
        num_sync_batchnorm=f.whole("num_sync_batchnorm"),
        param_devices=f.texts("param_devices"),
        device_ids=f.maybe("device_ids", f.wholes),
        broadcast_buffers=f.maybe("broadcast_buffers", f.flag),
        find_unused_parameters=f.maybe("find_unused_parameters", f.flag),
        t=t,
        replicas=f.maybe("replicas", f.wholes),
        parts=f.maybe("parts", f.wholes),
        ignored=f.maybe("ignored", f.texts) or (),
    )


def loader(f: Fields, t: float) -> drawn_data.Loader:
    """LOADER."""
    return drawn_data.Loader(
        id=f.whole("id"),
        site=f.site(),
        dataset=f.text("dataset"),
        root=f.whole("root"),
        root_size=f.maybe("root_size", f.whole),
        size=f.maybe("size", f.whole),
        split=f.maybe("split", f.text),
        sampler=f.text("sampler"),
        num_replicas=f.maybe("num_replicas", f.whole),
        sampler_rank=f.maybe("sampler_rank", f.whole),
        sampler_seed=f.maybe("sampler_seed", lambda name: f.whole(name, -(1 << 53))),
        shuffle=f.maybe("shuffle", f.flag),
        batch_size=f.maybe("batch_size", f.whole),
        drop_last=f.flag("drop_last"),
        num_workers=f.whole("num_workers"),
        iterable=f.flag("iterable"),
        resolvable=f.flag("resolvable"),
        t=t,
        digest=f.maybe("digest", f.text),
        hides=f.maybe("hides", f.flag) or False,
    )


def batch(f: Fields, t: float, step: int) -> drawn_data.Batch:
    """BATCH; `step`: optimizer steps before it."""
    return drawn_data.Batch(
        loader=f.whole("loader"),
        pass_=f.whole("pass"),
        n=f.whole("n"),
        size=f.whole("size"),
        indices=f.maybe("indices", f.wholes),
        wait_s=f.real("wait_s"),
        step=step,
        t=t,
        labels=f.maybe("labels", f.wholes),
    )


def feed(f: Fields, t: float, step: int) -> drawn_data.Feed:
    """FEED; `step`: optimizer steps before it."""
    spot = f.maybe("spot", f.flag) or False
    anchors = f.maybe("anchors", f.texts) or ()
    return drawn_data.Feed(
        step=step, hashes=f.texts("hashes"), size=f.whole("size"), t=t, spot=spot, anchors=anchors
    )


def step(f: Fields, t: float) -> model.Step:
    """STEP."""
    return model.Step(
        n=f.whole("n"),
        optimizer=f.whole("optimizer"),
        kind=f.text("kind"),
        lr=f.reals("lr"),
        samples=f.whole("samples"),
        data_s=f.real("data_s"),
        compute_s=f.real("compute_s"),
        optimizer_s=f.maybe("optimizer_s", f.real),
        loss=f.maybe("loss", f.any_real),
        grads=f.maybe("grads", f.sums),
        grad_names=f.maybe("grad_names", f.texts) or (),
        synced=f.maybe("synced", f.flag),
        rss_bytes=f.maybe("rss_bytes", f.whole),
        device_bytes=f.maybe("device_bytes", f.whole),
        site=f.site(),
        t=t,
        backwards=f.maybe("backwards", f.whole),
        unsynced=f.maybe("unsynced", f.whole),
        num_params=f.maybe("num_params", f.whole),
        num_missing=f.maybe("num_missing", f.whole),
        missing=f.maybe("missing", f.texts) or (),
        own=f.maybe("own", f.sums),
        own_last=f.maybe("own_last", f.sums),
        empty=f.maybe("empty", f.whole),
        kept=f.maybe("kept", f.texts) or (),
        lost=f.maybe("lost", f.whole) or 0,
        exchanges=f.maybe("exchanges", f.whole),
        numbers=f.maybe("numbers", f.whole) or 0,
        evaluation_mode=f.maybe("evaluation_mode", f.flag) or False,
        wraps=f.maybe("wraps", f.wholes),
        modules=f.maybe("modules", f.texts) or (),
        within=f.maybe("within", f.flag) or False,
    )


def stepped_on(f: Fields) -> dict[int, Sums]:
    """STEPPED_ON: gradients by step."""
    return {f.whole("n"): f.sums("grads")}


def later(f: Fields) -> dict[int, tuple[float | None, float]]:
    """By number of a step, what was not there yet when it was told: its loss, and seconds on the device."""
    told = f.maybe("later", f.inner)
    if told is None:
        return {}
    losses, seconds = told.sums("loss"), told.reals("device_s")
    return dict(zip(told.wholes("n"), zip(losses, seconds, strict=False), strict=False))


def params(f: Fields, t: float) -> model.Params:
    """PARAMS."""
    return model.Params(
        n=f.whole("n"),
        names=f.texts("names"),
        sums=f.sums("sums"),
        t=t,
        drawn=f.maybe("drawn", f.texts) or (),
        drawn_sums=f.maybe("drawn_sums", f.sums) or (),
    )


def final(f: Fields) -> model.Final:
    """FINAL."""
    return model.Final(
        names=f.texts("names"),
        sums=f.sums("sums"),
        sharded=f.flag("sharded"),
        touched=f.maybe("touched", f.flag) or False,
    )


def save(f: Fields, t: float) -> Save:
    """SAVE."""
    return Save(
        path=f.text("path"),
        out=f.flag("out"),
        site=f.site(),
        api=f.text("api"),
        prefix=f.text("prefix"),
        num_tensors=f.whole("num_tensors"),
        sums=f.sums("sums"),
        t=t,
        live=f.maybe("live", f.flag) or False,
        untracked=f.maybe("untracked", f.flag) or False,
    )


def file_write(f: Fields, t: float) -> FileWrite:
    """FILE."""
    return FileWrite(op=f.text("op"), path=f.text("path"), out=f.flag("out"), site=f.site(), t=t)


def line_change(f: Fields, t: float) -> LineChange:
    """LINE_CHANGE."""
    return LineChange(
        model=f.whole("model"),
        what=f.text("what"),
        step=f.whole("step"),
        site=f.site(),
        callers=f.sites("callers"),
        names=f.texts("names"),
        sums=f.sums("sums"),
        t=t,
    )


def traffic(f: Fields, _t: float) -> Traffic:
    """TRAFFIC."""
    return Traffic(
        name=f.text("name"),
        site=f.site(),
        ranks=f.maybe("ranks", f.wholes),
        peer=f.maybe("peer", f.whole),
        calls=f.whole("calls"),
        bytes=f.maybe("bytes", f.whole),
        largest=f.maybe("largest", f.any_real),
    )


def other(kind: str, t: float, decoded: dict[str, Any]) -> model.Event | None:
    """Any kind without a record of its own; None for a kind that nobody knows."""
    if kind not in _GENERIC:
        return None
    site = Fields(decoded).site()
    kept = {name: plain(value) for name, value in decoded.items() if name not in {"e", "t", "site"}}
    return model.Event(kind, t, site, kept)


TIMED: dict[str, tuple[str, Callable[[Fields, float], Any]]] = {
    events.GROUP: ("groups", group),
    events.COLLECTIVE: ("collectives", collective),
    events.WRAP: ("wraps", wrap),
    events.LOADER: ("loaders", loader),
    events.PARAMS: ("params", params),
    events.SAVE: ("saves", save),
    events.FILE: ("files", file_write),
    events.LINE_CHANGE: ("line_changes", line_change),
    events.TRAFFIC: ("traffic", traffic),
}
"""Kinds that need nothing but their own fields and time: where they are kept, and how they are read."""
