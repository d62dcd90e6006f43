"""Calls taken out of a test that lets only some ranks make them, as edits."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import (
    ImpliedCall,
    PropertyRead,
    later_in_block,
    name_of,
    names_bound_in,
    names_in,
    start,
    walk,
)
from grader.model.finding import Location
from grader.model.fix import Edit, Fix

# Names for what special methods give, and how they are asked for it.
_ASKED = {
    "__str__": ("text", "str({})"), "__format__": ("text", "format({})"), "__repr__": ("text", "repr({})"),
    "__len__": ("length", "len({})"), "__bool__": ("holds", "bool({})"), "__float__": ("number", "float({})"),
    "__int__": ("number", "int({})"),
}  # fmt: skip
_SAYING = {"print", "save", "open", "dump", "write", "info", "log"}


def out_of_test(script: Script, call: ast.Call, summary: str) -> Fix | None:
    """The first or last call of a block, or its only one, made by whoever comes to the test."""
    tree, edits = script.names.tree(call), Edits(script)
    statement = tree.statement(call)
    branch = tree.parent.get(statement)
    bare = isinstance(statement, ast.Expr) and statement.value is call
    if not bare or not isinstance(branch, ast.If) or branch.orelse:
        return None
    text = edits.text(statement)
    if len(branch.body) == 1:
        edits.rewrite(branch, text)
        return edits.fix(summary)
    stored = names_bound_in(*branch.body)
    if stored & names_in(statement):
        return None
    if statement is branch.body[0]:
        edits.before(branch, text)
    elif statement is branch.body[-1]:
        edits.after(branch, text)
    else:
        return None
    edits.remove(statement)
    return edits.fix(summary)


def value_of_all(script: Script, call: ast.Call, test: ast.AST) -> tuple[str, Fix | None]:
    """For a value that only some ranks work out with others' help: advice, and the edit by which all of them do.

    `x = f() if rank == 0 else 0`, or `x = f()` as the first statement under `if rank == 0:`. "" in other cases.
    """
    if any(word in name_of(call).lower() for word in _SAYING):
        return "", None
    tree, edits = script.names.tree(call), Edits(script)
    statement, branch = tree.statement(call), tree.parent.get(test)
    if isinstance(branch, ast.IfExp) and branch.body is call:
        edits.replace(branch, edits.text(call))
        told = f"Write {script.quote(call)} instead of {script.quote(branch)} at {script.at(branch)}: all ranks must"
        return f"{told} make the call.", edits.fix("Lets all ranks make the call.")
    first = isinstance(branch, ast.If) and bool(branch.body) and branch.body[0] is statement
    if not first or not isinstance(branch, ast.If) or not isinstance(statement, ast.Assign):
        return "", None
    bound = names_in(*statement.targets)
    other = {n.id for s in (branch.test, *branch.orelse) for n in walk(s) if isinstance(n, ast.Name)}
    if statement.value is not call or bound & other:
        return "", None
    edits.before(branch, edits.text(statement))
    edits.remove(statement)
    told = f"Move {script.quote(statement)} from {script.at(statement)} to right before {script.at(branch)}, out of "
    return f"{told}the test: all ranks must make the call.", edits.fix("Lets all ranks make the call.")


def asks(script: Script, call: ast.Call) -> str:
    """What a line does that makes a call, also one that the text writes as a read of an attribute or of an object."""
    if isinstance(call, ImpliedCall):
        return f"runs `{call.func.attr}` of {script.quote(call)}"
    return f"{'reads' if isinstance(call, PropertyRead) else 'calls'} {script.quote(call)}"


def read_of_all(script: Script, call: ast.Call, test: ast.AST) -> str:
    """For a read that runs a collective, in a block that some ranks alone come to: advice to read above its test.

    "" for plain calls, and for what the block itself has made.
    """
    tree = script.names.tree(call)
    branch = tree.parent.get(test)
    if not isinstance(call, PropertyRead | ImpliedCall) or not isinstance(branch, ast.If):
        return ""
    made = {n.id for n in walk(branch) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if made & {n.id for n in walk(call) if isinstance(n, ast.Name)} or not tree.inside(call, branch):
        return ""
    method = call.func.attr
    name, asked = (method, "{}") if isinstance(call, PropertyRead) else _ASKED.get(method, ("", ""))
    if not name:
        return ""
    name += "_of_all" if name in tree.loads else ""
    read = asked.format(ast.unparse(call))
    return f"Read it on all ranks, above the test at {script.at(branch)}: `{name} = {read}`; under it use `{name}`."


def value_of_some(script: Script) -> tuple[str, Fix | None]:
    """The same for the one call of the script that runs a collective and is kept from some ranks; "" for several."""
    found = []
    for call in script.collectives.running:
        guard = script.guards.partial(call)
        if guard is not None and guard.condition.sure and not script.guards.alone(call):
            found.append((call, guard.test))
    return value_of_all(script, *found[0]) if len(found) == 1 else ("", None)


def after_the_yield(script: Script, call: ast.Call) -> tuple[str, Fix | None]:
    """For a context manager in which some ranks wait before its `yield`: the others' call behind it.

    What the block of its `with` does on the others alone is then done when the waiting ones go on. "" where the call
    stands in no such function.
    """
    tree, edits = script.names.tree(call), Edits(script)
    function, statement = tree.function(call), tree.statement(call)
    branch = tree.parent.get(statement)
    if not isinstance(function, ast.FunctionDef) or not isinstance(branch, ast.If) or branch.orelse:
        return "", None
    handed = [s for s in function.body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Yield)]
    if len(handed) != 1 or branch not in function.body or start(handed[0]) < start(branch):
        return "", None
    test = branch.test
    plain = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    other = (
        edits.text(test.operand) if isinstance(test, ast.UnaryOp) and plain else f"not ({edits.text(test)})"
    )
    edits.after(handed[0], f"if {other}:", f"    {edits.text(statement)}")
    told = f"The ranks that come first must make their call behind the `yield`: `if {other}: {edits.text(statement)}`"
    fix = edits.fix("Lets the other ranks make their call after their work.")
    return f"{told} after {script.at(handed[0])}.", fix


def without_decorator(script: Script, place: Location) -> tuple[str, Fix | None]:
    """For a decorator that keeps ranks from a whole function: advice, and the edit where nothing in it is for one."""
    for tree in script.trees:
        for function in ast.walk(tree.root) if tree.path == place.path else ():
            if not isinstance(function, ast.FunctionDef):
                continue
            for decorator in function.decorator_list:
                if decorator.lineno != place.line or decorator.end_lineno != decorator.lineno:
                    continue
                edit = Edit(tree.path, place.line, 1, place.line + 1, 1, "")
                says = any(name_of(c) in _SAYING for c in tree.calls_within(function))
                told = f"Take `@{ast.unparse(decorator)}` off `{function.name}`: all ranks must call it"
                if says:
                    return (
                        f"{told}. What it prints or saves belongs under a test of the rank inside it.",
                        None,
                    )
                return f"{told}.", Fix("Lets all ranks call the function.", (edit,))
    return "", None


def before_leaving(script: Script, calls: Sequence[ast.Call], test: ast.AST) -> tuple[str, Fix | None]:
    """For calls behind an early exit that some ranks take: advice, and the edit that makes them call as well.

    "" where `test` is of no such exit. Calls in deeper blocks than the exit's own leave no edit.
    """
    tree, edits = script.names.tree(test), Edits(script)
    branch = tree.parent.get(test)
    if not isinstance(branch, ast.If) or branch.orelse or any(tree.inside(c, branch) for c in calls):
        return "", None
    leaving, behind = branch.body[-1], later_in_block(tree.parent, branch)
    plain = [c for c in calls if tree.statement(c) in behind]
    if not plain:
        return "", None
    made = [s for s in behind if start(s) < start(plain[-1])]
    bound = names_bound_in(*made)
    if bound & names_in(*plain) or len(plain) < len(calls):
        return "", None
    texts = [edits.text(c) for c in plain]
    edits.before(leaving, *texts)
    written = ", ".join(f"`{text}`" for text in texts)
    told = f"Let the ranks that leave make the call first: {written} right before {script.quote(leaving)} at "
    return (
        f"{told}{script.at(leaving)}.",
        edits.fix("Lets the ranks that leave make the call first."),
    )


def above_own_test(script: Script, call: ast.Call, branch: ast.If) -> str:
    """Advice for a statement of a block that can be made before its test; "" where the block prepares it."""
    statement = script.names.tree(call).statement(call)
    if statement not in branch.body or statement.end_lineno != statement.lineno:
        return ""
    used = names_in(statement)
    for earlier in branch.body[: branch.body.index(statement)]:
        if used & names_bound_in(earlier):
            return ""
    rest = (
        "all ranks call it then, and decide by what it gives them."
        if branch.orelse or len(branch.body) > 1
        else "all ranks call it then. The test has nothing left to decide, so leave it out."
    )
    return f"Move {script.quote(statement)} above the test at {script.at(branch)}: {rest}"
