"""Ranks that ended badly by themselves: when, with which words, at which line, and whether another rank caused it.

The kernel says who failed and when; the words are the script's own and may be forged, so that they explain and never
decide. What is shown of them is one capped line without anything that could act.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from grader.checks.evidence import Evidence
from grader.checks.phrases import place
from grader.checks.run.endings.exception_places import exception_places
from grader.model.finding import Location
from grader.model.run import Frame, RankRecord
from grader.model.trace import Event

_LONGEST_WORDS = 160
_CHANGING = re.compile(r"0x[0-9a-fA-F]+|\d+")
# What a rank is told when a partner is gone: never the first cause.
_LOST_PARTNER = re.compile(
    r"Connection (closed|reset) by (remote )?peer|[Bb]roken ?pipe|remote process (has )?(exited|terminated)"
    r"|ncclRemoteError"
    r"|Failed to recv, got 0 bytes|recvValue failed|sendBytes failed|Application timeout caused pair closure"
    r"|NCCL communicator was aborted|Connection was (likely )?closed|store->get\(.*got error"
)
_BACKEND_ERRORS = ("RuntimeError", "DistBackendError", "DistNetworkError", "DistStoreError")
_OTHER_CHILD = re.compile(r"[Pp]rocess \d+ terminated with (signal SIGTERM|exit code -15)")


@dataclass(frozen=True, slots=True)
class RankFailure:
    """One rank that ended with an error of its own.

    Attributes:
        rank: global rank; exit_code: as in the record.
        type: exception class, "" where nothing was said; message: its text, safe, several lines.
        frames: the submission's frames, innermost first.
        t: when, seconds after the ranks' start.
        follows: True where the words only say that another rank was gone.
    """

    rank: int
    exit_code: int | None
    type: str
    message: str
    frames: tuple[Frame, ...]
    t: float
    follows: bool

    @property
    def site(self) -> Frame | None:
        """The submission's innermost line."""
        return self.frames[0] if self.frames else None

    @property
    def where(self) -> tuple[Location, ...]:
        """The line as a place; empty where it is unknown."""
        return place(self.site)

    @property
    def words(self) -> str:
        """The first line of the message that says something, short enough for a sentence."""
        return shown(self.message)

    @property
    def signal(self) -> str:
        """`SIGKILL`, "" where no signal ended it."""
        if self.exit_code is None or self.exit_code >= 0:
            return ""
        try:
            return signal.Signals(-self.exit_code).name
        except ValueError:
            return f"signal {-self.exit_code}"

    def same(self, other: RankFailure) -> bool:
        """Whether two ranks failed in the same way: one mistake, met by both."""
        if (self.type, self.exit_code, self.follows) != (other.type, other.exit_code, other.follows):
            return False
        return _CHANGING.sub("#", self.words) == _CHANGING.sub("#", other.words)


def shown(text: str, limit: int = _LONGEST_WORDS) -> str:
    """The first line of a text that says something: printable, without backquotes, capped."""
    line = next((one.strip() for one in text.splitlines() if one.strip()), "")
    line = "".join(c if c.isprintable() else "\ufffd" for c in line).replace("`", "'")
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def lost_partner(message: str) -> bool:
    """Whether an exception only says that another rank was gone."""
    return _LOST_PARTNER.search(message) is not None


def rank_failures(evidence: Evidence) -> tuple[RankFailure, ...]:
    """All ranks that failed, causes before consequences, each in the order of time."""
    found = [
        failure for record in evidence.record.ranks if (failure := _failure_of(evidence, record)) is not None
    ]
    firm = [f.t for f in found if not f.follows and not _inside_collective(evidence, f)]
    # Whatever a backend's words: what fails inside a collective after another rank failed elsewhere fails for that.
    found = [
        _following(f) if _inside_collective(evidence, f) and any(t <= f.t for t in firm) else f for f in found
    ]
    if any(not f.follows and f.exit_code != -signal.SIGTERM for f in found):
        # A launcher that sees one rank fail ends the others.
        found = [f if f.exit_code != -signal.SIGTERM else _following(f) for f in found]
    return tuple(sorted(found, key=lambda f: (f.follows, f.t, f.rank)))


def _failure_of(evidence: Evidence, record: RankRecord) -> RankFailure | None:
    if record.killed_by_judge or record.exit_code in (0, None):
        return None
    told = next(iter(evidence.rank(record.rank).events("exception")), None)
    failure = record.failure
    frames = tuple(f for f in failure.frames if f.in_submission) if failure is not None else ()
    kind = failure.type if failure is not None else _text(told, "type")
    message = failure.message if failure is not None else _text(told, "message")
    follows = lost_partner(message) or _OTHER_CHILD.search(message) is not None
    t = told.t if told is not None else record.ended_s
    return RankFailure(record.rank, record.exit_code, kind, message, frames or _frames(told), t, follows)


def _inside_collective(evidence: Evidence, failure: RankFailure) -> bool:
    """Whether a run-time error (not a wrong argument) was raised below a call into torch.distributed."""
    written = evidence.record.ranks[failure.rank].failure
    if written is None or written.type not in _BACKEND_ERRORS or not written.frames:
        return False
    return not written.frames[0].in_submission and "torch/distributed/" in written.frames[0].path


def _following(failure: RankFailure) -> RankFailure:
    return RankFailure(
        failure.rank, failure.exit_code, failure.type, failure.message, failure.frames, failure.t, True
    )


def _text(event: Event | None, name: str) -> str:
    value = event.fields.get(name, "") if event is not None else ""
    return value if isinstance(value, str) else ""


def _frames(event: Event | None) -> tuple[Frame, ...]:
    """Frames as the probe told them; whatever is not a site is left out."""
    sites = exception_places(event) if event is not None else ()
    return tuple(Frame(site.path, site.line, site.function, True) for site in sites)
