"""Loads the plug-ins of a kind and refuses all that do not fit, in one message with file and line.

Every kind goes through here: rules, diagnoses, runtimes, exports, commands, pages. Knows none of them.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from grader.errors import GraderError, InfraError, TaskError
from grader.plugins.garbage import without_collections
from grader.plugins.problems import PluginProblem, line_in, meant, refuse
from grader.plugins.shape import Complaint, Shape
from grader.plugins.shape_check import ShapeCheck, strange_names
from grader.plugins.source_lines import SourceLines
from grader.plugins.sources import PluginFile, Sources, listed


@dataclass(frozen=True, slots=True)
class Plugin:
    """One module that was loaded from a file."""

    file: PluginFile
    module: ModuleType

    @property
    def name(self) -> str:
        """The module's name without the packages above it."""
        return self.file.name

    @property
    def page(self) -> str:
        """Its docstring."""
        return (self.module.__doc__ or "").strip()

    def get(self, name: str, default: Any = None) -> Any:
        """A constant or a function of it."""
        return getattr(self.module, name, default)

    def problem(self, name: str, complaint: Complaint) -> PluginProblem:
        """What is wrong with one of its names, where only all plug-ins together show it."""
        line = SourceLines(self.file.path).of(name, complaint.culprit)
        text = f"`{name}`: {complaint.text}" if name else complaint.text
        return PluginProblem(self.file.path, line, text, self.file.of_course)


def load(
    sources: Sources,
    shape: Shape,
    together: Callable[[Sequence[Plugin]], Iterable[PluginProblem]] = lambda _plugins: (),
) -> tuple[Plugin, ...]:
    """All plug-ins of a kind, in the order of their sources.

    Args:
        sources: where they come from.
        shape: what each must hold.
        together: finds what is wrong with all of them together, such as names that clash.

    Raises:
        TaskError: files of the course's own folder need mending.
        InfraError: files of this package or of an installed one do.
    """
    files, amiss = listed(sources)
    problems, found = list(amiss), []
    with without_collections():
        for file in files:
            plugin, faults = _checked(file, shape)
            problems += faults
            if plugin is not None:
                found.append(plugin)
    problems += together(found)
    refuse(problems)
    return tuple(found)


def load_one(file: PluginFile, shape: Shape) -> Plugin:
    """One of them, where the others may wait until they are asked for; raises what `load` raises."""
    plugin, faults = _checked(file, shape)
    refuse(faults)
    assert plugin is not None
    return plugin


def import_file(file: PluginFile) -> Plugin | PluginProblem:
    """The module of a file, or why it cannot be imported."""
    try:
        return Plugin(file, importlib.import_module(file.module) if file.module else _executed(file))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a plug-in may raise anything; its author reads what
        message = error.msg if isinstance(error, SyntaxError) else error
        text = f"cannot be imported: {type(error).__name__}: {message}{_suggestion(error)}"
        return PluginProblem(file.path, line_in(file.path, error) or 1, text, file.of_course)


def taken_twice(
    plugins: Iterable[Plugin], what: str, key: Callable[[Plugin], str]
) -> Iterator[PluginProblem]:
    """Plug-ins whose key an earlier one has; `what` is what the key is called."""
    for plugin, taken, first in clashes(plugins, lambda one: (key(one),)):
        text = f"the {what} {taken} is taken by {first.file.path}; choose another"
        yield plugin.problem("", Complaint(text))


def clashes(
    plugins: Iterable[Plugin], keys: Callable[[Plugin], Iterable[str]]
) -> Iterator[tuple[Plugin, str, Plugin]]:
    """Plug-ins one of whose keys an earlier one has: the later one, the key, the earlier one."""
    owners: dict[str, Plugin] = {}
    for plugin in plugins:
        for key in keys(plugin):
            first = owners.setdefault(key, plugin)
            if first is not plugin:
                yield plugin, key, first


def failure(what: str, file: PluginFile, function: str, error: BaseException) -> GraderError:
    """What to raise where a function of a plug-in failed while it was used: never the learner's fault.

    Returns:
        TaskError for a file of the course, InfraError for all others.
    """
    line = line_in(file.path, error) or SourceLines(file.path).of(function)
    text = f"{what}: {type(error).__name__}: {error} ({file.path}:{line})"
    return TaskError(text) if file.of_course else InfraError(text)


def _checked(file: PluginFile, shape: Shape) -> tuple[Plugin | None, list[PluginProblem]]:
    if not shape.file_name.fullmatch(file.name):
        text = f"{shape.what} is not called like this; a name that is right is `{shape.file_example}`"
        return None, [PluginProblem(file.path, 0, text, file.of_course)]
    plugin = import_file(file)
    if isinstance(plugin, Plugin):
        faults = ShapeCheck(shape, plugin.module, file.path).faults()
        return plugin, [PluginProblem(file.path, line, text, file.of_course) for line, text in faults]
    # It cannot be asked for values; what its text alone shows is told all the same.
    lines = SourceLines(file.path)
    strange = strange_names(shape, lines)
    return None, [
        plugin,
        *(PluginProblem(file.path, lines.of(name), text, file.of_course) for name, _, text in strange),
    ]


def _executed(file: PluginFile) -> ModuleType:
    """The module of a file that lies in no package; nothing is written beside it."""
    module = ModuleType(f"course_{file.path.parent.name}.{file.name}")
    module.__file__ = str(file.path)
    code = compile(file.path.read_bytes(), str(file.path), "exec")
    # Dataclasses look their own module up.
    sys.modules[module.__name__] = module
    exec(code, vars(module))
    return module


def _suggestion(error: BaseException) -> str:
    """What was meant by a name that is not there."""
    close = ""
    if isinstance(error, AttributeError) and error.name:
        close = meant(error.name, dir(error.obj))
    elif isinstance(error, ImportError) and error.name in sys.modules:
        close = meant(getattr(error, "name_from", None) or "", dir(sys.modules[error.name]))
    elif isinstance(error, NameError) and error.name and (step := error.__traceback__) is not None:
        while step.tb_next is not None:
            step = step.tb_next
        close = meant(error.name, (*step.tb_frame.f_globals, *dir(builtins)))
    return f"; did you mean `{close}`?" if close else ""
