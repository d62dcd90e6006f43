"""Where a script's text reaches for other processes, for live objects or for the judge, and what it does with it.

Reads only. Looking is told and no more; using what was found, as no honest script would, is told as that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass

from grader.checks.source.script import Script
from grader.checks.source.syntax.tree import Tree

_CALLS = {
    "gc.get_objects": "walks over all live objects",
    "gc.get_referrers": "walks from objects to whoever holds them",
    "gc.get_referents": "walks from objects to what they hold",
    "sys._current_frames": "looks at the stack of every thread",
    "sys.settrace": "watches every line that runs",
    "sys.setprofile": "watches every call that is made",
    "threading.settrace": "watches every line that runs",
    "threading.setprofile": "watches every call that is made",
    "sys.addaudithook": "listens to the interpreter's own events",
    "os.closerange": "closes descriptors that it did not open",
    "os.setuid": "changes its user",
    "os.seteuid": "changes its user",
    "os.setreuid": "changes its user",
    "os.setresuid": "changes its user",
    "os.pidfd_getfd": "takes a descriptor from another process",
}
_FRAMES = {"sys._getframe", "inspect.currentframe", "inspect.stack"}
_BY_NUMBER = {
    "os.write",
    "os.fdopen",
    "os.dup2",
    "os.close",
    "open",
    "os.sendfile",
    "os.ftruncate",
    "os.lseek",
}
_CLOCKS = {"time.time", "time.monotonic", "time.perf_counter", "time.process_time", "json.dumps", "os.write"}
_TOUCHES = {
    *_BY_NUMBER,
    "fcntl.fcntl",
    "os.dup",
    "os.pwrite",
    "os.read",
    "os.splice",
    "os.writev",
    "socket.fromfd",
}
"""What is done to a descriptor, or to a path of one."""
_SENDS = {"send", "write", "sealed", "_send", "_write"}
_INNER = {"__globals__", "__closure__", "cell_contents"}
_WALKS = {"gc.get_objects", "gc.get_referrers", "gc.get_referents", "inspect.getclosurevars"}
_DESCRIPTORS = re.compile(r"^/(?:proc/[^/]+/fd(?:info)?|dev/fd)\b(?!/[012]$)")
_INSIDE = re.compile(r"^/proc/(self|\d+|\{|%|$)(?!/(status|statm|stat|cgroup|limits|io)\b)")
_JUDGE = re.compile(r"\bgrader\.(probe|launch|checks|run|evaluate)\b|_warm_parent|\bgrader/(probe|launch)\b")
_UPWARDS = {"f_back", "f_locals", "f_globals", "tb_frame"}


@dataclass(frozen=True, slots=True)
class ProcessAccess:
    """One place; `why` continues a sentence that begins with the place; `holds`: honest code can't be the reason."""

    node: ast.expr | ast.stmt
    why: str
    holds: bool = False


def process_accesses(script: Script) -> Iterator[ProcessAccess]:
    """All places of all files, in no order."""
    found = [ProcessAccess(node, why) for tree in script.trees for node, why in _looks(script, tree)]
    used = [*_used(script), *_imported(script)]
    yield from used
    told = {reach.node for reach in used}
    yield from (reach for reach in found if reach.node not in told)


def own_packages(script: Script) -> set[str]:
    """Top-level names that the submission brings itself."""
    return {tree.path.partition("/")[0].removesuffix(".py") for tree in script.trees}


def _used(script: Script) -> Iterator[ProcessAccess]:
    """What was searched for or dug up, and then written to, copied or closed."""
    descriptors = {node for tree in script.trees for node in _searches(script, tree)}
    inner = {node for tree in script.trees for node in _digs(script, tree)}
    if not descriptors and not inner:
        return
    for call in script.all_calls():
        given = call.args[:2] if script.names.qualified(call.func) == "os.dup2" else call.args[:1]
        touches = script.names.qualified(call.func) in _TOUCHES
        if touches and any(_from(script, one, descriptors | inner) for one in given):
            yield ProcessAccess(call, "touches a descriptor that it searched for", True)
        sends = isinstance(call.func, ast.Attribute) and call.func.attr in _SENDS and not touches
        if sends and _from(script, call.func, inner):
            yield ProcessAccess(
                call, "writes through what it found inside foreign functions or objects", True
            )


def _from(script: Script, node: ast.expr, sources: Set[ast.AST]) -> bool:
    return not sources.isdisjoint(script.values.closure(node))


def _searches(script: Script, tree: Tree) -> Iterator[ast.AST]:
    """Paths of descriptors, and descriptors whose kind is asked for one number after the other."""
    for text in tree.texts:
        above = tree.parent.get(text)
        whole = _spelled(above) if isinstance(above, ast.JoinedStr) else str(text.value)
        if _DESCRIPTORS.match(whole):
            yield text
    for call in tree.calls:
        if (
            script.names.qualified(call.func) == "os.fstat"
            and call.args
            and _loops(script, tree, call.args[0])
        ):
            yield from (loop.iter for loop in _range_loops(script, call.args[0]))


def _spelled(joined: ast.JoinedStr) -> str:
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in joined.values)


def _digs(script: Script, tree: Tree) -> Iterator[ast.AST]:
    """What leads into functions of others, and to whoever holds an object."""
    yield from (load for name in _INNER for load in tree.attribute_loads.get(name, ()))
    yield from (text for text in tree.texts if text.value in _INNER)
    yield from (call for call in tree.calls if script.names.qualified(call.func) in _WALKS)


def _imported(script: Script) -> Iterator[ProcessAccess]:
    """Imports of the judge's own modules, in whichever way; a submission may have a `grader` of its own."""
    if "grader" in own_packages(script):
        return
    for tree in script.trees:
        for node in tree.importing:
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            level = 0 if isinstance(node, ast.Import) else node.level
            if not level and any(m.partition(".")[0] == "grader" for m in modules):
                yield ProcessAccess(node, "imports a module of the judge", any(map(_JUDGE.search, modules)))
        for text in tree.texts:
            above = tree.parent.get(text)
            if _JUDGE.search(str(text.value)) and isinstance(above, ast.Call | ast.Subscript):
                name = script.names.qualified(above.func if isinstance(above, ast.Call) else above.value)
                if name in ("importlib.import_module", "__import__", "sys.modules", "sys.modules.get"):
                    yield ProcessAccess(text, "names a module of the judge, to have it", True)


def _looks(script: Script, tree: Tree) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    for call in tree.calls:
        name = script.names.qualified(call.func) or ""
        if name in _CALLS:
            yield call, _CALLS[name]
        elif name in _FRAMES and _climbs(tree, call):
            yield call, "climbs into the frames of its callers"
        elif name in _BY_NUMBER and _foreign_descriptor(script, call):
            yield call, "uses a descriptor by its number"
        elif name == "os.kill" and call.args and _is_parent(script, call.args[0]):
            yield call, "sends a signal to the process that started it"
    for text in tree.texts:
        if _INSIDE.match(str(text.value)):
            yield text, "names the inside of a process"
        elif _JUDGE.search(str(text.value)) and not _is_docstring(tree, text):
            yield text, "names a module of the judge"
        elif text.value in _INNER:
            yield text, "looks inside functions"
    for load in (load for name in _INNER for load in tree.attribute_loads.get(name, ())):
        yield load, "looks inside functions"
    stores = (d.node for clock in _CLOCKS for d in tree.attributes.get(clock.rpartition(".")[2], ()))
    for store in (s for s in dict.fromkeys(stores) if isinstance(s, ast.Assign)):
        for target in store.targets:
            if isinstance(target, ast.Attribute) and script.names.qualified(target) in _CLOCKS:
                yield store, "replaces a function of the standard library"


def _climbs(tree: Tree, call: ast.Call) -> bool:
    """Whether more than the caller's name or line is taken; loggers ask for those."""
    above: ast.AST | None = tree.parent.get(call)
    while isinstance(above, ast.Attribute | ast.Subscript):
        if isinstance(above, ast.Attribute) and above.attr in ("f_locals", "f_globals"):
            return True
        above = tree.parent.get(above)
    function = tree.function(call)
    inside = ast.walk(function) if function is not None else ast.walk(tree.root)
    looped = any(isinstance(n, ast.While) for n in ast.walk(function or tree.root))
    reads = {n.attr for n in inside if isinstance(n, ast.Attribute)} & _UPWARDS
    return bool(reads & {"f_locals", "f_globals"}) or ("f_back" in reads and looped)


def _foreign_descriptor(script: Script, call: ast.Call) -> bool:
    given = call.args[1] if script.names.qualified(call.func) == "os.dup2" and len(call.args) > 1 else None
    given = given or (call.args[0] if call.args else None)
    number = script.values.constant(given)
    if isinstance(number, int) and not isinstance(number, bool):
        return number > 2
    return given is not None and _loops(script, script.names.tree(call), given)


def _loops(script: Script, tree: Tree, given: ast.expr) -> bool:
    """Whether a number is counted through, in the function in which it is used."""
    return any(tree.function(d) is tree.function(given) for d in _range_loops(script, given))


def _range_loops(script: Script, given: ast.expr) -> list[ast.For]:
    if not isinstance(given, ast.Name):
        return []
    nodes = (d.node for d in script.names.lookup(given.id, given))
    return [node for node in nodes if isinstance(node, ast.For) and _is_range(node.iter)]


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"


def _is_parent(script: Script, node: ast.expr) -> bool:
    return any(
        isinstance(o, ast.Call) and script.names.qualified(o.func) == "os.getppid"
        for o in script.values.origins(node)
    )


def _is_docstring(tree: Tree, node: ast.Constant) -> bool:
    return isinstance(tree.parent.get(node), ast.Expr)
