"""A submission's text, parsed once: what every rule's source half asks its questions of.

Nothing is executed and nothing outside the submission is read. A file that does not parse leaves a script without any
code, so that every rule stays silent and the syntax error is the one thing that is said.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace

from grader.checks.source.calls.property_reads import handed_called, meetings_called, properties_called
from grader.checks.source.calls.sites import Calls
from grader.checks.source.calls.unreached_functions import UnreachedFunctions
from grader.checks.source.collectives.collective_calls import INIT, Collectives
from grader.checks.source.data.loader_sharding import Sharding
from grader.checks.source.gradients.accumulation import Accumulations
from grader.checks.source.gradients.accumulation_rounds import AccumulationRounds
from grader.checks.source.gradients.averaging import Averaging
from grader.checks.source.gradients.updates import Updates
from grader.checks.source.libraries.frameworks import Frameworks
from grader.checks.source.libraries.loop_owners import LoopOwners
from grader.checks.source.libraries.names import Names
from grader.checks.source.metrics.metric_reductions import Reductions
from grader.checks.source.models.meshes import Meshes
from grader.checks.source.models.networks import Networks
from grader.checks.source.models.wrapped_models import Replicas
from grader.checks.source.ranks.rank_expressions import Ranks
from grader.checks.source.ranks.rank_guards import Guards
from grader.checks.source.ranks.rank_tests import Conditions
from grader.checks.source.syntax.nodes import UNKNOWN, literal
from grader.checks.source.syntax.problem import SYNTAX, SyntaxProblem
from grader.checks.source.syntax.tree import Tree
from grader.checks.source.training_loops import OTHER_WRAPPERS, Training
from grader.checks.source.values.lost_values import LostValues
from grader.checks.source.values.reaching_assignments import Scopes
from grader.checks.source.values.sources import Values
from grader.model.finding import Location
from grader.model.notebook_lines import cell_line, cell_text
from grader.model.submission import SourceFile, Submission
from grader.model.syntax_tree import parse_text, refuse_uncompilable
from grader.readers import reads

__all__ = ["SYNTAX", "UNKNOWN", "Script", "SyntaxProblem", "parse"]

_NEWLINE = re.compile(r"\r\n|\r|\n")
_QUOTE_LENGTH = 110
_LOOKED_AT_BYTES = 4096


class Script:
    """A parsed submission.

    Attributes:
        submission: the files as handed in.
        syntax_errors: files that are not Python; then there are no trees.
        launched: a launcher starts it once per rank; False: it is started once, and starts its ranks; None: nobody
            has said.
        trees: one per Python file. names, scopes, graph, values, unreached, ranks, conditions, owners, guards,
            training, networks, meshes, collectives, frameworks, sharding, reductions, updates, accumulations,
            accumulation_rounds, averaging, replicas: the questions one can ask, each in its own module.
    """

    def __init__(
        self,
        submission: Submission,
        trees: tuple[Tree, ...],
        syntax_errors: tuple[SyntaxProblem, ...],
        launched: bool | None = True,
    ) -> None:
        self.submission = submission
        self.launched = launched
        self.syntax_errors = syntax_errors
        self.trees = trees
        self.names = Names(trees)
        self.scopes = Scopes(self.names)
        self.graph = Calls(trees, self.names, self.scopes)
        self.values = Values(trees, self.names, self.scopes, self.graph)
        self.unreached = UnreachedFunctions(trees, self.names, self.graph, self.values)
        self.ranks = Ranks(self.names, self.graph, self.values)
        self.conditions = Conditions(self.names, self.scopes, self.graph, self.values, self.ranks)
        self.owners = LoopOwners(trees, self.names, self.graph)
        self.guards = Guards(self.names, self.graph, self.conditions, self.owners)
        self.training = Training(trees, self.names, self.graph, self.values, self.owners)
        self.networks = Networks(self.names, self.graph, self.values, self.training)
        self.collectives = Collectives(trees, self.names, self.graph, self.values, self.networks, self.owners)
        self.meshes = Meshes(self.names, self.graph, self.values, self.ranks, self.training)
        self.frameworks = Frameworks(trees, self.names, self.graph, self.values, self.training, self.owners)
        self.sharding = Sharding(
            self.names, self.graph, self.values, self.ranks, self.training, self.frameworks
        )
        self.reductions = Reductions(self.names, self.graph, self.values, self.collectives, self.training)
        self.updates = Updates(trees, self.names, self.graph, self.values, self.training)
        self.accumulations = Accumulations(self.names, self.values, self.training, self.updates)
        self.accumulation_rounds = AccumulationRounds(self.names, self.values, self.conditions)
        self.replicas = Replicas(
            self.names, self.graph, self.values, self.guards, self.training, self.updates
        )
        self.averaging = Averaging(
            self.names,
            self.graph,
            self.values,
            self.ranks,
            self.training,
            self.updates,
            LostValues(self.names, self.scopes, self.graph),
        )
        self._lines: dict[str, list[str]] = {}

    @property
    def problem(self) -> SyntaxProblem | None:
        """The first syntax error, None where every file parses."""
        return self.syntax_errors[0] if self.syntax_errors else None

    def calls(self, *dotted: str) -> list[ast.Call]:
        """Calls of library functions by canonical name, however they were imported; in the order of the text."""
        return self.graph.named(*dotted)

    def calls_under(self, prefix: str) -> list[tuple[str, ast.Call]]:
        """Calls of all functions below a package, with their names."""
        return self.graph.under(prefix)

    def all_calls(self) -> Iterable[ast.Call]:
        """Every call of the submission, file by file."""
        for tree in self.trees:
            yield from tree.calls

    def called(self, *names: str) -> list[ast.Call]:
        """Calls by the last part of what is called, as it is written (`step` of `optimizer.step()`)."""
        return [call for tree in self.trees for call in tree.called(*names)]

    def called_like(self, test: Callable[[str], object]) -> list[ast.Call]:
        """The same for all names that pass a test, which is asked once per name."""
        return [call for tree in self.trees for call in tree.called_like(test)]

    def calls_given(self, *keywords: str) -> list[ast.Call]:
        """Calls that are given one of these arguments by its keyword."""
        return [call for tree in self.trees for call in tree.calls_given(*keywords)]

    def argument(self, call: ast.Call, name: str) -> ast.expr | None:
        """An argument by keyword or position: an expression, `UNKNOWN`, or None where it is not given."""
        return self.graph.argument(call, name)

    def given(self, call: ast.Call, name: str) -> ast.expr | None:
        """The same, and None as well where nobody can say which."""
        return None if (found := self.argument(call, name)) is UNKNOWN else found

    @property
    def joins_group(self) -> bool:
        """The script is written for several processes: it starts a group, wraps a model, or a framework does.

        Not so where processes call each other (`torch.distributed.rpc`): there each has a part of its own, and what
        holds for equal ranks does not hold.
        """
        if self.training.wraps or self.calls(*OTHER_WRAPPERS):
            return True
        if self.training.framework and not self.frameworks.alone:
            return True
        calls_others = any(i.startswith("torch.distributed.rpc") for t in self.trees for i in t.imports)
        return bool(self.calls(INIT)) and not calls_others

    @property
    def mentions_distributed(self) -> bool:
        """Any sign of several processes at all, the launcher's environment included."""
        if self.joins_group or any(i.startswith("torch.distributed") for t in self.trees for i in t.imports):
            return True
        return any(
            {"RANK", "WORLD_SIZE", "LOCAL_RANK"} & t.constants and "environ" in t.attribute_loads
            for t in self.trees
        )

    @property
    def may_hide_setup(self) -> bool:
        """Modules are imported that were not handed in: they may start groups, replace `print`, reduce metrics."""
        return bool(self.names.foreign)

    def mentioned(self, name: str) -> list[ast.AST]:
        """Places that read a name: plain, as an attribute, by `getattr(…, name)`; or one it is imported as."""
        found: list[ast.AST] = [
            c for c in self.called("getattr") if len(c.args) > 1 and literal(c.args[1]) == name
        ]
        for tree in self.trees:
            imported = (a for s in tree.importing for a in s.names if a.name.rpartition(".")[2] == name)
            for local in dict.fromkeys((name, *(a.asname or name for a in imported))):
                found += tree.loads.get(local, ())
            found += tree.attribute_loads.get(name, ())
        return found

    def may_run(self, node: ast.AST) -> bool:
        """Whether a node does not stand in a function that nobody calls or hands on, which does nothing."""
        function = self.names.tree(node).function(node)
        if function is None or function in self.graph.class_of:
            return self.unreached.above(node) is None
        return bool(self.graph.sites(function) or self.graph.references(function))

    def location(self, node: ast.AST) -> Location:
        """Where a node stands, for a finding."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        return Location(
            self.names.tree(node).path, line, column + 1, getattr(node, "end_lineno", None) or line
        )

    def at(self, node: ast.AST) -> str:
        """`train.py:41`, in backquotes."""
        where = self.location(node)
        return f"`{where.path}:{where.line}`"

    def line(self, path: str, line: int) -> str:
        """One line of the text as Python counts lines; "" outside the file."""
        if path not in self._lines:
            self._lines[path] = _NEWLINE.split(self.submission.text(path) or "")
        lines = self._lines[path]
        return lines[line - 1] if 1 <= line <= len(lines) else ""

    def quote(self, node: ast.AST) -> str:
        """A node as written, on one line, in backquotes, cut where it is long."""
        tree = self.names.tree(node)
        first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1) or 1
        line = self.line(tree.path, first).encode()
        # `ast` counts columns in bytes of UTF-8.
        cut = line[
            getattr(node, "col_offset", 0) : getattr(node, "end_col_offset", None) if last == first else None
        ]
        text = " ".join(cut[:_LOOKED_AT_BYTES].decode(errors="replace").split()).replace("`", "'")
        if last > first:
            text = _without_comment(text) + " …"
        return f"`{text[: _QUOTE_LENGTH - 1]}…`" if len(text) > _QUOTE_LENGTH else f"`{text}`"


def _without_comment(line: str) -> str:
    """A line without the comment at its end, if it is one for certain: quotes may hold a `#`."""
    place = line.find(" # ", max(line.rfind('"'), line.rfind("'")) + 1)
    return line if place < 0 else line[:place]


def parse(submission: Submission, *, launched: bool | None = True) -> Script:
    """Parses all Python files of a submission; never raises, whatever is in them."""
    trees: list[Tree] = []
    problems: list[SyntaxProblem] = []
    files = [file for file in submission.files if file.path.endswith(".py")]
    for file in files:
        reads(file.path)
        parsed = _parsed(file)
        if isinstance(parsed, SyntaxProblem):
            problems.append(_with_cell(parsed, submission))
        else:
            trees.append(Tree(file.path, file.text.removeprefix("\ufeff"), parsed, alone=len(files) == 1))
    reads("")
    read = () if problems else meetings_called(handed_called(properties_called(tuple(trees))))
    return Script(submission, read, tuple(problems), launched)


def unread(submission: Submission, problem: tuple[str, ...]) -> Script:
    """A submission that could not be read within limits; `problem`: `SyntaxProblem.unread`."""
    return Script(submission, (), (SyntaxProblem.of_unread(*problem),))


def syntax_problem(submission: Submission) -> SyntaxProblem | None:
    """Why nothing of a submission can run, and no more than that; None where every file parses."""
    for file in submission.files:
        if file.path.endswith(".py"):
            reads(file.path)
            if isinstance(parsed := _parsed(file), SyntaxProblem):
                return _with_cell(parsed, submission)
    return None


def _parsed(file: SourceFile) -> ast.Module | SyntaxProblem:
    text = file.text.removeprefix("\ufeff")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parse_text(text)
            refuse_uncompilable(tree, file.path)
            return tree
    except (SyntaxError, ValueError) as error:
        return _problem(file.path, text, error)
    except (RecursionError, MemoryError):
        message = "an expression or block is nested too deeply for Python to read"
        return SyntaxProblem(file.path, 1, 1, message, "")


def _with_cell(problem: SyntaxProblem, submission: Submission) -> SyntaxProblem:
    cell = cell_line(submission, problem.path, problem.line)
    return problem if cell is None else replace(problem, cell=cell_text(*cell))


def _problem(path: str, text: str, error: SyntaxError | ValueError) -> SyntaxProblem:
    lines = _NEWLINE.split(text)
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            return SyntaxProblem(path, number, line.index("\0") + 1, "it holds a null byte", "")
    if isinstance(error, SyntaxError):
        number = min(max(error.lineno or 1, 1), max(len(lines), 1))
        quote = lines[number - 1].strip() if number <= len(lines) else ""
        return SyntaxProblem(path, number, max(error.offset or 1, 1), error.msg, quote[:_QUOTE_LENGTH])
    return SyntaxProblem(path, 1, 1, "it holds characters that no Python file can hold", "")
