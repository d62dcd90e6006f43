"""Which collectives a rank takes part in, and from which line: those called by name, and those below all names.

Two layers, one account. Functions of `torch.distributed` are hooked by name: they say what the script asked for and how
long it took. Whatever else passes through a process group, such as functional collectives, DTensor and the group's own
methods, is told by the group's hooks; older torch has none, and there a group's methods are hooked as Python sees them.
Left out is what DDP's reducer does: its steps tell of that. A script's own use of the store counts, too.
"""

from __future__ import annotations

import atexit
import functools
import sys
import weakref
from types import FrameType
from typing import Any

from grader.probe.communication import traffic
from grader.probe.communication.collective_names import COLLECTIVES, METHODS
from grader.probe.communication.process_groups import holders
from grader.probe.communication.told_calls import number_if_told
from grader.probe.gradients import backward_passes
from grader.probe.hooks import code_locations
from grader.probe.hooks.code_locations import CodeLocation
from grader.probe.hooks.patches import guarded, outermost, replace, skip_compiling, within
from grader.probe.models import layouts, tracked_models
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_STORE_CALLS = ("get", "multi_get", "set", "multi_set", "add", "append", "wait")
_HOOK = 0x6C65  # any number that nobody else takes: a group keeps one hook for each
_REDUCER = "torch/nn/parallel/distributed.py"
_QUIET = ("torch.nn.parallel.distributed", "torch.autograd.graph")
"""Modules that a call comes from, where it is DDP's reducer that calls: on the way of a backward pass, or its own."""

_ranks: dict[str, list[int] | None] = {}  # by name of a group, those that are not all
_quiet: frozenset[int] = frozenset()  # ids of the namespaces of `_QUIET`


def _write(name: str, site: CodeLocation | None, n: int, tensors: Any, **known: Any) -> None:
    numel, device = traffic.size_of(tensors)
    fields = {
        "named": True,
        "reduce_op": "",
        "numel": numel,
        "device": device,
        "async_op": False,
        "seconds": None,
    }
    if tracked_models.going_forward():
        fields["forward"] = True
    if backward_passes.going_backward():
        fields["backward"] = True
    if backward_passes.differentiating(sys._getframe(2)):
        fields["differentiated"] = True
    writer.write(events.COLLECTIVE, name=name, site=site, n=n, **{**fields, **known})


def _among(group: Any) -> dict[str, list[int]]:
    """The ranks of a group, where they are not all."""
    name = getattr(group, "group_name", None)
    if name is None:
        return {}
    if name not in _ranks:
        ranks = layouts.members(group)
        _ranks[name] = ranks if ranks is not None and ranks != layouts.members(None) else None
    found = _ranks[name]
    return {"ranks": found} if found is not None else {}


def _group_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    import torch.distributed as dist

    kind = dist.distributed_c10d.ProcessGroup
    return next((value for value in (kwargs.get("group"), *args) if isinstance(value, kind)), None)


def _called(name: str, started_s: float, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    site = code_locations.here()
    n = number_if_told(name, site)
    among = _among(_group_of(args, kwargs))
    traffic.add_called(name, site, among.get("ranks"), result, args, kwargs)
    if n:
        _write(
            name,
            site,
            n,
            traffic.payload(name, args, kwargs),
            reduce_op=_reduce_op(name, args, kwargs),
            async_op=bool(kwargs.get("async_op", False)),
            seconds=round(writer.now() - started_s, 6),
            **among,
        )


def _reduce_op(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    import torch.distributed as dist

    kinds = (dist.ReduceOp, dist.ReduceOp.RedOpType)
    for value in (kwargs.get("op"), *args):
        if isinstance(value, kinds):
            return str(value).rpartition(".")[2]
    return "SUM" if "reduce" in name else ""


@guarded("collective below names")
def _issued(method: str, tensors: Any, frame: FrameType, group: Any) -> None:
    """A group was given something to do by nobody's name, in that frame."""
    if _of_the_wrapper(frame):
        return
    name = METHODS.get(method.removeprefix("_"), method)
    site = code_locations.here(frame)
    n = number_if_told(name, site)
    among = _among(group)
    traffic.add(name, site, among.get("ranks"), None, tensors)
    if n:
        tensor = tensors[0] if tensors else None
        numbers = tensor[0] if isinstance(tensor, list) and tensor else tensor
        _write(name, site, n, numbers, named=False, **among)


def _of_the_wrapper(frame: FrameType | None) -> bool:
    """Whether DDP does it for itself, on the way to that frame: while it is built, or to bring buffers in line."""
    while frame is not None and code_locations.relative(frame.f_code.co_filename) is None:
        if frame.f_code.co_filename.endswith(_REDUCER):
            return True
        frame = frame.f_back
    return False


def _before(group: Any, call: Any) -> None:
    """A group's hook, before anything that it is given to do; `group` is a weak reference to it."""
    frame = sys._getframe().f_back
    # Straight from C++ in a backward pass, or from the wrapper: DDP's reducer, which runs too often to be told of. It
    # is asked first, and by the namespace, which costs least. On a GPU, backward passes run in threads of torch's own,
    # where no line of Python lies beneath.
    if frame is None or id(frame.f_globals) in _quiet or within("collective"):
        return
    _asked(call, frame, group)


@guarded("group hook")
def _asked(call: Any, frame: FrameType, group: Any) -> None:
    _issued(call.name.name.lower(), call.input_tensors or call.output_tensors, frame, group())


skip_compiling(_before)


def close() -> None:
    """Take the hooks off again: the interpreter's end is no time to call anything of its."""
    import torch.distributed as dist

    if dist.is_available():
        for group in list(dist.distributed_c10d._world.pg_map):
            if hasattr(group, "unregister_pre_hook"):
                group.unregister_pre_hook(_HOOK)


@guarded("group hooks")
def _made(result: Any) -> None:
    """A process group of any kind was made; `result` is it, or begins with it."""
    group = result[0] if isinstance(result, tuple) else result
    if hasattr(group, "register_pre_hook"):  # a rank outside the group is given none
        group.register_pre_hook(_HOOK, functools.partial(_before, weakref.ref(group)))


def _after_made(original: Any) -> Any:
    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        _made(result)
        return result

    return make


def _method(name: str) -> Any:
    """For torch without hooks of groups: the same for a method as Python sees it."""

    def make(original: Any) -> Any:
        @functools.wraps(original)
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe().f_back
            if frame is not None and id(frame.f_globals) not in _quiet and not within("collective"):
                _issued(name, args[:1], frame, self)
            return original(self, *args, **kwargs)

        return method

    return make


def _store_call(name: str) -> Any:
    def make(original: Any) -> Any:
        @functools.wraps(original)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            started_s = writer.now()
            result = original(self, *args, **kwargs)
            _asked_store(name, started_s, sys._getframe(1))
            return result

        return call

    return make


@guarded("store")
def _asked_store(name: str, started_s: float, frame: FrameType) -> None:
    # What torch itself keeps there, while a group is formed for one, is not the script's.
    if code_locations.relative(frame.f_code.co_filename) is None:
        return
    site = code_locations.here(frame)
    n = number_if_told(f"store.{name}", site)
    traffic.add(f"store.{name}", site, None, None, None)
    if n:
        _write(f"store.{name}", site, n, None, seconds=round(writer.now() - started_s, 6))


def install() -> None:
    """Hook functions by name, groups as they are made, and the store."""
    import torch.distributed as dist

    global _quiet
    if not dist.is_available():
        return
    _quiet = frozenset(id(vars(sys.modules[name])) for name in _QUIET if name in sys.modules)
    for name in COLLECTIVES:
        replace(holders(name), name, _collective(name))
    group = dist.distributed_c10d.ProcessGroup
    if hasattr(group, "register_pre_hook"):
        atexit.register(guarded("group hooks")(close))
        for maker in ("_new_process_group_helper", "split_group"):
            replace(holders(maker), maker, _after_made)
    else:
        for method in (*METHODS, "_allgather_base", "_reduce_scatter_base"):
            if hasattr(group, method):
                replace([group], method, _method(method))
    for name in _STORE_CALLS:
        replace([dist.distributed_c10d.Store], name, _store_call(name))


def _collective(name: str) -> Any:
    from torch.compiler import is_compiling

    def after(result: Any, started_s: float, *args: Any, **kwargs: Any) -> None:
        _called(name, started_s, result, args, kwargs)

    counted = outermost("collective", after)

    def make(original: Any) -> Any:
        watched = counted(original)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not (is_compiling() or within("collective")):
                traffic.look(name, args, kwargs)
            return watched(*args, **kwargs)

        return call

    return make
