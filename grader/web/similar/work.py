"""What is compared and what comes of it, and their JSON on the way to the comparing process and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Work:
    """What one learner handed in: `id` is the attempt's, `files` are (path, text)."""

    id: int
    files: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines `first` to `last` of a file; `partner`: index of the passage on the other side that it resembles most."""

    path: str
    first: int
    last: int
    partner: int


@dataclass(frozen=True, slots=True)
class Pair:
    """Two works that share passages.

    Attributes:
        a, b: ids; share_a, share_b: part of each one's own code that the passages cover, 0 to 1, skeleton left out.
        passages_a, passages_b: where.
    """

    a: int
    b: int
    share_a: float
    share_b: float
    passages_a: tuple[Passage, ...]
    passages_b: tuple[Passage, ...]

    @property
    def share(self) -> float:
        """The larger of both shares."""
        return max(self.share_a, self.share_b)

    @property
    def num_lines(self) -> int:
        """Lines that the passages cover, of the work where they are fewer."""
        return min(_lines(self.passages_a), _lines(self.passages_b))


@dataclass(frozen=True, slots=True)
class Question:
    """What to compare.

    Attributes:
        works: at most one per learner.
        skeleton: texts that everybody started from.
        most: how many pairs are wanted, those that share most.
        ignore_common: leave out passages that many of the class share; off for a pair that is looked at closely.
    """

    works: tuple[Work, ...]
    skeleton: tuple[str, ...]
    most: int = 100
    ignore_common: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """Pairs, those with the most lines in common first; `num_compared` works; `too_large`: those left out."""

    pairs: tuple[Pair, ...]
    num_compared: int
    too_large: tuple[int, ...]


def question_out(question: Question) -> str:
    """The question as JSON."""
    return json.dumps(asdict(question))


def question_in(text: str) -> Question:
    """What `question_out` wrote."""
    fields: dict[str, Any] = json.loads(text)
    works = tuple(
        Work(one["id"], tuple((path, content) for path, content in one["files"])) for one in fields["works"]
    )
    return Question(works, tuple(fields["skeleton"]), fields["most"], fields["ignore_common"])


def answer_out(answer: Answer) -> str:
    """The answer as JSON."""
    return json.dumps(asdict(answer))


def answer_in(text: str) -> Answer:
    """What `answer_out` wrote."""
    fields: dict[str, Any] = json.loads(text)
    pairs = tuple(
        Pair(
            one["a"],
            one["b"],
            one["share_a"],
            one["share_b"],
            _passages(one["passages_a"]),
            _passages(one["passages_b"]),
        )
        for one in fields["pairs"]
    )
    return Answer(pairs, fields["num_compared"], tuple(fields["too_large"]))


def _passages(fields: Sequence[dict[str, Any]]) -> tuple[Passage, ...]:
    return tuple(Passage(one["path"], one["first"], one["last"], one["partner"]) for one in fields)


def _lines(passages: Sequence[Passage]) -> int:
    return len({(one.path, line) for one in passages for line in range(one.first, one.last + 1)})
