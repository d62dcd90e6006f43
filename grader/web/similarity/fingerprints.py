"""Compare works by winnowed fingerprints of their tokens, as MOSS does (Schleimer, Wilkerson and Aiken, 2003).

copydetect makes and compares the fingerprints: names and strings are blanked first, so renaming hides nothing. Left out
is what everybody was given (the skeleton) and what much of the class has (the idioms that the course teaches). Of
copydetect only what works on texts in memory is used; what reads folders or opens a browser is never called.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate, combinations
from typing import Any

import numpy as np
from copydetect import CodeFingerprint, compare_files
from copydetect.utils import get_token_coverage

from grader.web.similarity.comparison import (
    ComparedSubmission,
    ComparisonRequest,
    Passage,
    SimilarityResult,
    SimilarPair,
)

NOISE, WINDOW = 25, 6
"""Least characters of blanked code that match, and fingerprints of which one is kept: a match of 30 is found."""
MAX_CHARACTERS = 200_000
_COMMON_AT_LEAST, _COMMON_SHARE = 8, 0.3
_LEAST_LINES = 4


@dataclass(frozen=True, slots=True)
class _Read:
    """A work's fingerprint, and where its files begin in the joined text."""

    work: ComparedSubmission
    print: Any
    text: str
    line_starts: tuple[int, ...]
    file_lines: tuple[int, ...]


def compare(request: ComparisonRequest) -> SimilarityResult:
    """Compare every work with every other."""
    small = [one for one in request.submissions if sum(len(text) for _, text in one.files) <= MAX_CHARACTERS]
    known: dict[str, Any] = {}
    given = _skeleton_hashes(request.skeleton)
    read = [_read(work, known) for work in small]
    common = _common_hashes(read) if request.ignore_common else set()
    for one in {id(r.print): r.print for r in read}.values():
        _leave_out(one, given | common)
    pairs = []
    for a, b in _candidates(read, request.most):
        pair = _pair(a, b)
        if pair is not None and (pair.num_lines >= _LEAST_LINES or not request.ignore_common):
            pairs.append(pair)
    pairs.sort(key=lambda pair: (-pair.num_lines, -pair.share, pair.a, pair.b))
    kept = {one.id for one in small}
    return SimilarityResult(
        tuple(pairs),
        len(small),
        tuple(one.id for one in request.submissions if one.id not in kept),
        _closer(pairs, small, given) if request.closer else (),
    )


def _closer(
    pairs: list[SimilarPair], works: list[ComparedSubmission], given: set[int]
) -> tuple[SimilarPair, ...]:
    """The same pairs, looked at without regard to what the class has in common."""
    wanted = {number for pair in pairs for number in (pair.a, pair.b)}
    known: dict[str, Any] = {}
    read = {work.id: _read(work, known) for work in works if work.id in wanted}
    for print_ in known.values():
        _leave_out(print_, given)
    return tuple(_pair(read[pair.a], read[pair.b]) or pair for pair in pairs)


def _read(work: ComparedSubmission, known: dict[str, Any]) -> _Read:
    text = "\n".join(content for _, content in work.files)
    if text not in known:
        known[text] = _fingerprint(text, WINDOW)
    lengths = [content.count("\n") + 1 for _, content in work.files]
    starts = [0, *(position + 1 for position, letter in enumerate(text) if letter == "\n")]
    return _Read(work, known[text], text, tuple(starts), tuple(accumulate(lengths, initial=0)))


def _fingerprint(text: str, window: int) -> Any:
    # The lexer drops blank lines at the beginning and rewrites line ends; its text is then no longer ours to count in.
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    led = "#\n" + plain if plain[:1].isspace() else plain
    print_ = CodeFingerprint("work.py", NOISE, window, language="python", fp=io.StringIO(led))
    if len(print_.offsets):
        # After the name of a class the library notes that name's length in place of all that was taken out before it.
        print_.offsets[:, 1] = np.maximum.accumulate(print_.offsets[:, 1]) - (len(led) - len(plain))
    return print_


def _skeleton_hashes(skeleton: tuple[str, ...]) -> set[int]:
    given: set[int] = set()
    for text in skeleton:
        given |= _fingerprint(text, 1).hashes
    return given


def _common_hashes(read: list[_Read]) -> set[int]:
    # Works that are the same to the letter, or but for their names, count once: a group of them is no idiom.
    distinct = {one.print.filtered_code: one.print for one in read}.values()
    counts: Counter[int] = Counter()
    for one in distinct:
        counts.update(one.hashes)
    least = max(_COMMON_AT_LEAST, _COMMON_SHARE * len(distinct))
    return {value for value, number in counts.items() if number >= least}


def _leave_out(print_: Any, hashes: set[int]) -> None:
    # The library's own way takes a passage that a work repeats for one that was given, so it is done here.
    print_.hashes = print_.hashes - hashes
    print_.hash_idx = {value: places for value, places in print_.hash_idx.items() if value not in hashes}
    print_.token_coverage = get_token_coverage(print_.hash_idx, NOISE, len(print_.filtered_code))


def _candidates(read: list[_Read], most: int) -> list[tuple[_Read, _Read]]:
    """The pairs that share the largest part of the smaller one's fingerprints: cheap, so that few need a close look."""
    found = []
    for a, b in combinations(read, 2):
        if a.work.earlier and b.work.earlier:
            continue
        shared = len(a.print.hashes & b.print.hashes)
        if shared > 1:
            smaller = min(len(a.print.hashes), len(b.print.hashes))
            found.append((shared / smaller, shared, a, b))
    found.sort(key=lambda one: (-one[0], -one[1], one[2].work.id, one[3].work.id))
    return [(a, b) for _, _, a, b in found[:most]]


def _pair(a: _Read, b: _Read) -> SimilarPair | None:
    overlap, (share_a, share_b), (slices_a, slices_b) = compare_files(a.print, b.print)
    if not overlap:
        return None
    spans_a, spans_b = _spans(slices_a), _spans(slices_b)
    votes: Counter[tuple[int, int]] = Counter()
    for value in a.print.hashes & b.print.hashes:
        for i in _places_in_text(a.print, a.print.hash_idx[value]):
            for j in _places_in_text(b.print, b.print.hash_idx[value]):
                votes[_span_at(spans_a, i), _span_at(spans_b, j)] += 1
    return SimilarPair(
        a.work.id,
        b.work.id,
        min(1.0, float(share_a)),
        min(1.0, float(share_b)),
        tuple(_passage(a, span, _best(votes, index, 0)) for index, span in enumerate(spans_a)),
        tuple(_passage(b, span, _best(votes, index, 1)) for index, span in enumerate(spans_b)),
    )


def _spans(slices: Any) -> list[tuple[int, int]]:
    return [(int(start), int(end)) for start, end in zip(slices[0], slices[1], strict=True)]


def _places_in_text(print_: Any, places: list[int]) -> list[int]:
    """Places in the blanked text as places in the text itself, as the library counts them."""
    offsets = print_.offsets
    if not len(offsets):
        return [int(place) for place in places]
    index = np.clip(np.searchsorted(offsets[:, 0], places), 0, len(offsets) - 1)
    return [int(place) for place in np.asarray(places) + offsets[index, 1]]


def _span_at(spans: list[tuple[int, int]], place: int) -> int:
    return max(0, bisect_right(spans, (place, 1 << 60)) - 1)


def _best(votes: Counter[tuple[int, int]], index: int, side: int) -> int:
    others = {key[1 - side]: number for key, number in votes.items() if key[side] == index}
    return max(others, key=lambda other: (others[other], -other), default=0)


def _passage(read: _Read, span: tuple[int, int], partner: int) -> Passage:
    first = _line(read, span[0])
    last = max(first, _line(read, max(span[0], span[1] - 1)))
    file = bisect_right(read.file_lines, first) - 1
    before = read.file_lines[file]
    num_lines = read.file_lines[file + 1] - before
    return Passage(read.work.files[file][0], first - before + 1, min(last - before + 1, num_lines), partner)


def _line(read: _Read, place: int) -> int:
    return max(0, min(bisect_right(read.line_starts, place), len(read.line_starts)) - 1)
