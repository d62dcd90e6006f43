"""Which rules a lint is asked about: codes and families to select and to ignore."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.rule import load_rules
from grader.checks.source.script import SYNTAX
from grader.errors import UsageError


@dataclass(frozen=True, slots=True)
class Choice:
    """Codes (`DATA002`) and families (`DATA`); an empty selection means all. What is ignored stays ignored."""

    select: frozenset[str] = frozenset()
    ignore: frozenset[str] = frozenset()

    def wants(self, code: str) -> bool:
        """Whether findings of this code are asked for; a file that does not parse is always told."""
        names = {code, code.rstrip("0123456789")}
        if code == SYNTAX:
            return True
        return (not self.select or bool(names & self.select)) and not names & self.ignore


def parse_choice(select: Iterable[str], ignore: Iterable[str]) -> Choice:
    """A choice from what was typed: each text holds one or several names, parted by commas or blanks.

    Raises:
        UsageError: a name is no rule's code and no family's.
    """
    return Choice(_names(select, "--select"), _names(ignore, "--ignore"))


def _names(texts: Iterable[str], option: str) -> frozenset[str]:
    codes = [rule.code for rule in load_rules()]
    families = sorted({code.rstrip("0123456789") for code in codes})
    found: set[str] = set()
    for text in texts:
        names = [name.upper() for name in re.split(r"[\s,]+", text) if name]
        if not names:
            raise UsageError(f"{option} {text!r}: name a rule such as DATA002, or a family such as DATA")
        for name in names:
            if name not in codes and name not in families:
                import difflib

                near = difflib.get_close_matches(name, [*families, *codes], n=1)
                hint = f" Did you mean {near[0]}?" if near else f" The families are {', '.join(families)}."
                raise UsageError(
                    f"{option}: there is no rule and no family {name!r}.{hint} `grader rules` lists all rules"
                )
            found.add(name)
    return frozenset(found)
