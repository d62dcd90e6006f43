"""What first made two ranks' models differ, as a second look saw it: the line, how it did it, and what to write."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum

from grader.checks.phrases import at, listed, places
from grader.checks.run.endings.stuck_ranks import rank_test
from grader.checks.source.causes import stands_at
from grader.checks.source.models.replica_repairs import made_under_test, sent_from
from grader.checks.source.ranks.deciding_tests import decided_alone, deciding_test, told_to_all
from grader.checks.source.script import Script
from grader.model.call_site import Site
from grader.model.finding import Location
from grader.model.line_change import LineChange

WEIGHTS, GRADIENTS = "weights", "gradients"
SEEN_AGAIN = "In a second run, looked at line by line,"
_MODULE = "<module>"


class Manner(Enum):
    """How a line came to make ranks differ."""

    OTHERWISE = "ran on both, and left other numbers on each"
    ALONE = "ran on one of them"
    IN_VAIN = "exchanged something, and left them different"
    UNUSED = "exchanged something, and changed none of them"
    NEVER = "was the last to change them, and nothing made them equal"


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """What first made two ranks' models differ.

    Attributes:
        what: `weights` or `gradients`.
        manner: how. change: what the line did; its step is counted from 0.
        ranks: both; where one ran the line alone, that one.
        names: tensors that differ afterwards. num_equal: of the others.
    """

    what: str
    manner: Manner
    change: LineChange
    ranks: tuple[int, ...]
    names: tuple[str, ...]
    num_equal: int

    def where(self, script: Script) -> tuple[Location, ...]:
        """The line, then the call that led to it, or all calls up to the test that let one rank through."""
        chain = self._chain(script)
        number, test = self._test(script)
        own = self._own_decision(script)
        if own is not None:
            return (*places(chain[:1]), script.location(own.test))
        return places(chain[:2]) if test is None else (*places(chain[:number]), test)

    def _chain(self, script: Script) -> list[Site]:
        callers = [c for c in self.change.callers if c.function != _MODULE or _is_given_something(script, c)]
        return [s for s in (self.change.site, *callers) if s is not None]

    def _test(self, script: Script) -> tuple[int, Location | None]:
        """The test that let one rank through, and how many calls stand below it; None where no test is seen."""
        if self.manner is Manner.ALONE:
            for number, site in enumerate(self._chain(script), 1):
                test = rank_test(script, site.path, site.line)
                if test is not None:
                    return number, test
        return 0, None

    def _own_decision(self, script: Script) -> ast.If | None:
        """The test of something else than the rank that let one rank step alone; None where it stands under none.

        Of another line than a step the others may have run it, too, without effect.
        """
        site = self.change.site
        if self.manner is not Manner.ALONE or site is None or self._test(script)[1] is not None:
            return None
        steps = any(stands_at(script, step, site) for step in script.updates.steps)
        return deciding_test(script, site.path, site.line) if steps else None

    def decided_alone(self, script: Script) -> str:
        """What the test that one rank passed alone stands for, as a sentence; "" where there is none."""
        own = self._own_decision(script)
        return decided_alone(script, own) if own is not None else ""

    def out_of_test(self, script: Script) -> str:
        """For a line that one rank alone runs: the call, or the line, to take out of the test; "" for others."""
        number, test = self._test(script)
        inner = self._chain(script)[number - 1] if test is not None else None
        if test is None or inner is None or rank_test(script, inner.path, inner.line) != test:
            return ""
        name, what = made_under_test(script, inner, test)
        if name:
            return (
                f"Drop {what} at `{test.path}:{test.line}`, so that all ranks run what stands under it: "
                f"`{inner.path}:{inner.line}` needs `{name}`, which is made there, too."
            )
        line = script.line(inner.path, inner.line).strip()
        return (
            f"Take `{line}` at `{inner.path}:{inner.line}` out of the test of the rank at `{test.path}:{test.line}`: "
            "all ranks have to run it."
        )

    def hint(self, script: Script) -> str:
        """What to write; "" where a rule's own words say it."""
        line, weights = at(self.change.site, "it"), self.what == WEIGHTS
        send = sent_from(script, self.change.site, self.ranks[0]) if weights else ""
        match self.manner:
            case Manner.ALONE if (test := self._own_decision(script)) is not None:
                return told_to_all(script, test)
            case Manner.ALONE if self._test(script)[1] is None:
                # No test keeps the others from it: they may well run it, and it changes nothing of theirs.
                own = _of_rank(script, self.change.site)
                if own:
                    return f"Use the same number on all ranks in {line}: {own} is another one on each."
                return f"Let {line} do the same on all ranks."
            case Manner.ALONE:
                sent = (
                    f", or send what rank {self.ranks[0]} has afterwards: {send}" if weights else ", or none"
                )
                return f"Let all ranks run {line}{sent}."
            case Manner.OTHERWISE:
                if weights:
                    return f"Right after {line} give all ranks what rank {self.ranks[0]} has: {send}."
                return f"Let {line} use the same numbers on all ranks, or do it before they are averaged."
            case Manner.IN_VAIN if self.num_equal:
                return f"Bring the gradients of all parameters together: {line} leaves out {self._names}."
            case Manner.UNUSED:
                return f"Reduce every `parameter.grad` itself in {line}, or copy the result back before the step."
            case _:
                return ""

    @property
    def sentence(self) -> str:
        """What was seen, for a finding's message; "" where that says no more than the finding."""
        line = at(self.change.site)
        match self.manner:
            case Manner.ALONE:
                return f"{SEEN_AGAIN} {self.what} were equal until {line} changed those of rank {self.ranks[0]} alone."
            case Manner.OTHERWISE:
                at_step = f"at step {self.change.step}"
                return f"{SEEN_AGAIN} {self.what} were equal until {line} left other numbers on each rank {at_step}."
            case Manner.IN_VAIN:
                part = self._names if self.num_equal else "all of them"
                return f"{SEEN_AGAIN} the exchange in {line} left {part} different on each rank."
            case Manner.UNUSED:
                return (
                    f"{SEEN_AGAIN} the exchange in {line} changed none of the {self.what} that the step used."
                )
            case Manner.NEVER:
                return ""

    @property
    def _names(self) -> str:
        return listed([f"`{name}`" for name in self.names], 3)


def _of_rank(script: Script, site: Site | None) -> str:
    """The rank, as that line reckons with it: `dist.get_rank()`; "" where it does not."""
    for tree in script.trees:
        for node in ast.walk(tree.root) if site is not None and tree.path == site.path else ():
            if not isinstance(node, ast.expr) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
                continue
            if site is not None and node.lineno == site.line and script.ranks.rank(node):
                return script.quote(node)
    return ""


def _is_given_something(script: Script, site: Site) -> bool:
    """Whether a line at module level hands something on: `net.apply(reset)`, and not just `main()`."""
    calls = (c for t in script.trees if t.path == site.path for c in t.calls if c.lineno == site.line)
    return any(c.args or c.keywords for c in calls)
