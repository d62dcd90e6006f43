"""`# noqa` comments: findings that a script's author does not want to read again, in lint and nowhere else.

    loader = DataLoader(train_set)  # noqa: DATA001      this code on this line
    loader = DataLoader(train_set)  # noqa: DATA, IO002  a family and a code
    loader = DataLoader(train_set)  # noqa               everything

A comment counts for the whole statement that its line belongs to, for a compound statement up to its colon. Grading
never asks here: what a run showed is not to be wished away.
"""

from __future__ import annotations

import io
import re
import tokenize

from grader.checks.source.script import SYNTAX
from grader.model.finding import Finding
from grader.model.submission import Submission

ALL = "*"
_NOQA = re.compile(
    r"#\s*noqa\b(?P<some>\s*:\s*(?P<codes>[a-z]+[0-9]*(?:[\s,]+[a-z]+[0-9]+)*)?)?", flags=re.IGNORECASE
)


class Silenced:
    """The comments of one submission."""

    def __init__(self, submission: Submission) -> None:
        self._submission = submission
        self._by_file: dict[str, dict[int, frozenset[str]]] = {}

    def covers(self, finding: Finding) -> bool:
        """Whether a comment stands at the finding's first place and names its code, its family, or nothing.

        A file that does not parse has no comments: nobody knows where its statements end.
        """
        place = finding.location
        if place is None or finding.code == SYNTAX:
            return False
        if place.path not in self._by_file:
            self._by_file[place.path] = comments_by_line(self._submission.text(place.path) or "")
        named = self._by_file[place.path].get(place.line, frozenset())
        return not named.isdisjoint({ALL, finding.code, finding.code.rstrip("0123456789")})


def comments_by_line(text: str) -> dict[int, frozenset[str]]:
    """Codes and families silenced on each line, in capitals; `ALL` where a comment names none."""
    if "noqa" not in text.lower():
        return {}
    found: dict[int, set[str]] = {}
    first, here = 0, set[str]()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
            if token.type == tokenize.COMMENT:
                named = _named(token.string)
                found.setdefault(token.start[0], set()).update(named)
                here |= named
            elif token.type == tokenize.NEWLINE:
                for line in range(first or token.start[0], token.end[0] + 1) if here else ():
                    found.setdefault(line, set()).update(here)
                first, here = 0, set()
            elif token.type not in {tokenize.NL, tokenize.INDENT, tokenize.DEDENT}:
                first = first or token.start[0]
            if not first:
                # A comment on a line of its own belongs to no statement.
                here = set()
    except (tokenize.TokenError, SyntaxError):
        # Then the file does not parse either, and that is the one finding it gets.
        pass
    return {line: frozenset(codes) for line, codes in found.items() if codes}


def _named(comment: str) -> set[str]:
    match = _NOQA.search(comment)
    if match is None:
        return set()
    if match["some"] is None:
        return {ALL}
    return set(re.findall(r"[A-Z]+[0-9]*", (match["codes"] or "").upper()))
