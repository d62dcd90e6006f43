"""Runtimes by name: those that come with the grader, found by folder, and those of installed packages.

One module of `runtimes` is one runtime, offered under the module's name: its `RUNTIME` is a class that follows the
protocol in `runtime`. A package offers its own class by an entry point of the group `grader.runtimes`; nothing of a
package is imported before its runtime is asked for. A class that does not follow the protocol is refused, with file and
line. Nothing is started here.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from grader.errors import GraderError, InfraError, UsageError
from grader.plugins.entry_points import entry_points_of, place_of
from grader.plugins.loader import import_file, load_one
from grader.plugins.problems import PluginProblem, meant
from grader.plugins.protocol_faults import protocol_faults
from grader.plugins.shape import Complaint, Constant, Shape
from grader.plugins.sources import RUNTIMES, PluginFile, Sources, modules_of, plugin_files
from grader.run.rank_variables import rank_variables
from grader.run.runtime import Availability, Runtime
from grader.settings import settings

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RuntimeEntry:
    """One runtime that is offered, whether or not this machine can run it.

    Attributes:
        name: as given to `--runtime`.
        package: name and version of the package that offers it, "" where it comes with the grader.
        load: imports it and gives its class; raises UsageError where it is refused.
    """

    name: str
    package: str
    load: Callable[[], type[Runtime]]

    def open(self) -> Runtime:
        """One, not yet entered.

        Raises:
            UsageError: it is refused; InfraError: a package's own class cannot be made.
        """
        return self._own_fault(self.load())

    def self_test(self) -> Availability:
        """Whether it can run here; raises what `open` raises, and InfraError where a package's own test fails."""
        return self._own_fault(self.open().self_test)

    def _own_fault(self, call: Callable[[], _T]) -> _T:
        try:
            return call()
        except Exception as error:
            if not self.package or isinstance(error, GraderError):
                raise
            where = traceback.extract_tb(error.__traceback__)[-1]
            message = f"{where.filename}:{where.lineno}: {type(error).__name__}: {error}"
            raise InfraError(
                f"The runtime {self.name!r} of {self.package} cannot be used. {message}"
            ) from error


def find_runtimes() -> tuple[RuntimeEntry, ...]:
    """All that are offered, those of packages last; sorted."""
    return (*_built_in(), *_of_packages())


def open_runtime(name: str) -> Runtime:
    """The runtime of that name, not yet entered.

    Raises:
        UsageError: there is none of that name, or it is refused; or no rank could have what GRADER_RANK_ENV asks for.
    """
    # Before anybody waits for it, not in the middle of each attempt.
    rank_variables(settings().rank_env)
    # Packages are looked through only where the name is not ours.
    found = _named(name, _built_in()) or _named(name, _of_packages())
    if len(found) > 1:
        both = " and ".join(entry.package for entry in found)
        raise UsageError(f"Which runtime {name!r}? {both} offer one of that name; uninstall all but one.")
    if not found:
        names = list(dict.fromkeys(entry.name for entry in find_runtimes()))
        hint = f" Did you mean `{near}`?" if (near := meant(name, names)) else ""
        raise UsageError(f"There is no runtime {name!r}. There is: {', '.join(names)}.{hint}")
    return found[0].open()


def _named(name: str, entries: tuple[RuntimeEntry, ...]) -> list[RuntimeEntry]:
    return [entry for entry in entries if entry.name == name]


def _built_in() -> tuple[RuntimeEntry, ...]:
    def entry(file: PluginFile) -> RuntimeEntry:
        return RuntimeEntry(file.name, "", lambda: load_one(file, SHAPE).get("RUNTIME"))

    return tuple(entry(file) for file in plugin_files(Sources(RUNTIMES.package)))


def _of_packages() -> tuple[RuntimeEntry, ...]:
    def entry(point: EntryPoint) -> RuntimeEntry:
        package = f"{point.dist.name} {point.dist.version}" if point.dist is not None else "a package"
        return RuntimeEntry(point.name, package, lambda: _load(point, package))

    found = map(entry, entry_points_of(RUNTIMES.group))
    return tuple(sorted(found, key=lambda one: (one.name, one.package)))


def _load(point: EntryPoint, package: str) -> type[Runtime]:
    who = f"The runtime {point.name!r} of {package} is refused:"
    place = "{}:{}".format(*place_of(point))
    if _named(point.name, _built_in()):
        raise UsageError(f"{who} the grader's own has that name. {place}: give it another one.")
    try:
        file = next(modules_of(point.module))
    except (Exception, SystemExit) as error:
        raise UsageError(f"{who} {place}: {type(error).__name__}: {error}") from error
    plugin = import_file(file)
    if isinstance(plugin, PluginProblem):
        raise UsageError(f"{who} {plugin}")
    candidate = plugin.get(point.attr)
    if candidate is None:
        near = meant(point.attr, vars(plugin.module))
        hint = f" Did you mean `{near}`?" if near else ""
        raise UsageError(f"{who} {place}: {point.module} has no `{point.attr}`.{hint}")
    if not isinstance(candidate, type):
        raise UsageError(f"{who} {place}: `{point.attr}` is no class.")
    faults = protocol_faults(candidate, Runtime)
    name = getattr(candidate, "name", point.name)
    if not faults and name != point.name:
        faults = [f"{place}: it is called {point.name!r} here, and {name!r} by `{point.attr}`."]
    if faults:
        raise UsageError("\n".join((who, *faults)))
    return candidate


def _protocol(value: Any) -> Iterator[Complaint]:
    if not isinstance(value, type):
        yield Complaint(f"is {value!r:.60}; it must be a class that follows the protocol `Runtime`")
        return
    yield from (Complaint(fault) for fault in protocol_faults(value, Runtime))


SHAPE = Shape(
    what="a runtime",
    constants=(Constant("RUNTIME", "RUNTIME = ProcessRuntime", _protocol),),
    file_example="process.py",
    closed=False,
)
