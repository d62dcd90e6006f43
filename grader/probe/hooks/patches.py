"""How hooks are put in place so that a fault of ours never becomes a fault of the script.

Wraps classes and modules, never instances: models must stay picklable and copyable. Knows no event of its own but the
one that says that a hook broke.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any, ParamSpec, TypeVar

from grader.probe.hooks import transforms
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_P = ParamSpec("_P")
_R = TypeVar("_R")

_MAX_FAILURES = 8

_values = True


def _no_compiler(_callback: Any) -> Any:
    return None


_set_compiler: Callable[[Any], Any] = _no_compiler
_to_skip: list[CodeType] = []
_cuda: Any = None  # of torch, once it is met
_captures: Callable[[], bool] = bool
_told_captured: set[str] = set()
_skip: Callable[[CodeType], Any] = _to_skip.append


def meet_compiler() -> None:
    """Learn from torch how to keep torch.compile away from our frames; those seen before are kept away, too."""
    global _set_compiler, _skip
    import torch._C._dynamo.eval_frame as inside

    _set_compiler = inside.set_eval_frame
    old = getattr(inside, "skip_code", None)
    if old is not None:
        _skip = old
    else:  # newer than torch 2.6
        action = inside._FrameAction
        strategy = inside._FrameExecStrategy(action.SKIP, action.DEFAULT)
        _skip = functools.partial(_skip_by, inside.set_code_exec_strategy, strategy)
    for code in _to_skip:
        _skip(code)


def _skip_by(set_strategy: Any, strategy: Any, code: CodeType) -> None:
    set_strategy(code, strategy)


def skip_compiling(function: Any) -> None:
    """Tell torch.compile not to compile this function's own frame, only what it calls."""
    code = getattr(function, "__code__", None)
    if code is not None:
        _skip(code)


def meet_devices() -> None:
    """Learn from torch how to tell that a CUDA graph is being captured."""
    global _cuda, _captures
    import torch

    _cuda, _captures = torch.cuda, torch._C._cuda_isCurrentStreamCapturing


def stop_values() -> None:
    """From now on nothing that tells of computing looks at anything."""
    global _values
    _values = False


def capturing() -> bool:
    """Whether a CUDA graph is being captured: whoever asks for a value then breaks it, and nothing is computed yet."""
    if _cuda is None or not _cuda._initialized:
        return False
    try:
        return bool(_captures())
    except RuntimeError:  # a script that only says that there is a device
        return False


def _captured(name: str) -> None:
    if name not in _told_captured:
        _told_captured.add(name)
        writer.write(events.CAPTURED, what=name)


def guarded(name: str, *, values: bool = False) -> Callable[[Callable[_P, _R]], Callable[_P, _R | None]]:
    """Make a hook harmless: nothing happens outside the rank's own process, and nothing is ever raised.

    The first failure is written as an event; after the eighth the hook stays off.

    Args:
        name: of the hook, for events.
        values: whether it tells of computing and may look at values. Then nothing happens while a CUDA graph is
            captured, which is told once, and what it computes is no part of a transform of `torch.func`.
    """

    def decorate(hook: Callable[_P, _R]) -> Callable[_P, _R | None]:
        failures = 0

        @functools.wraps(hook)
        def safe(*args: _P.args, **kwargs: _P.kwargs) -> _R | None:
            nonlocal failures
            # Every step passes here several times: the writer's descriptor is asked directly, not through `here`.
            if failures >= _MAX_FAILURES or writer._fd < 0:
                return None
            if values and not _values:
                return None
            if values and capturing():
                _captured(name)
                return None
            compiler = _set_compiler(None)  # torch.compile has no business with our own frames
            try:
                if values and transforms.depth():
                    with transforms.outside():
                        return hook(*args, **kwargs)
                return hook(*args, **kwargs)
            except Exception as error:  # noqa: BLE001  # whatever broke, the script goes on as if we were not there
                failures += 1
                if failures == 1:
                    try:
                        reason = f"hook {name} failed: {type(error).__name__}: {error}"[:500]
                        writer.write(events.UNSUPPORTED, reason=reason)
                    except Exception:  # noqa: BLE001  # not even the message could be made
                        failures = _MAX_FAILURES
                return None
            finally:
                if compiler is not None:
                    _set_compiler(compiler)

        skip_compiling(safe)
        return safe

    return decorate


def replace(owners: Iterable[Any], name: str, make: Callable[[Any], Any]) -> bool:
    """Put `make(original)` in place of `name`, in each owner that holds the same original.

    Returns:
        False where no owner has that name.
    """
    holders = [owner for owner in owners if owner is not None and hasattr(owner, name)]
    if not holders:
        return False
    original = getattr(holders[0], name)
    if getattr(original, "__probe__", False):
        return True
    changed = make(original)
    skip_compiling(changed)
    try:
        changed.__probe__ = True
    except AttributeError:
        pass  # a descriptor that takes no attributes; its owner is only ever given to us once
    for owner in holders:
        if getattr(owner, name) is original:
            setattr(owner, name, changed)
    return True


def outermost(name: str, after: Callable[..., None]) -> Callable[[Any], Any]:
    """Make a wrapper that reports a finished call unless it runs inside another one of the same name.

    `after(result, started_s, *args, **kwargs)` is called once the original has returned; calls that raise are not
    reported. Under torch.compile the original alone is traced.
    """
    report = guarded(name)(after)
    depth = _depths.setdefault(name, _Depth())

    def make(original: Any) -> Any:
        from torch.compiler import is_compiling

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or depth.level:
                return original(*args, **kwargs)
            started_s = writer.now()
            depth.level = 1
            try:
                result = original(*args, **kwargs)
            finally:
                depth.level = 0
            report(result, started_s, *args, **kwargs)
            return result

        return wrapper

    return make


def within(name: str) -> bool:
    """Whether this thread is inside a function that `outermost` wrapped under that name."""
    depth = _depths.get(name)
    return depth is not None and depth.level > 0


class _Depth(threading.local):
    level = 0


_depths: dict[str, _Depth] = {}
