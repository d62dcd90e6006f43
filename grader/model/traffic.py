"""How often one line of the script had its rank exchange something with others, and how much."""

from __future__ import annotations

from dataclasses import dataclass

from grader.model.call_site import Site


@dataclass(frozen=True, slots=True)
class Traffic:
    """All calls of one collective, or of messages to or from one rank, that one rank made at one line.

    Attributes:
        name: of the function of `torch.distributed` (`all_reduce`, `isend`), or `store.set` and the like.
        site: the line; None where it could not be told.
        ranks: among which; None: all.
        peer: the other rank of a message; None where it is none, or isn't known.
        calls: how often.
        bytes: of the tensors that the rank put in or, of a message, received; None where it gave objects.
        largest: absolute value of the numbers that it put in; None where that is not known of every call.
    """

    name: str
    site: Site | None
    ranks: tuple[int, ...] | None
    peer: int | None
    calls: int
    bytes: int | None
    largest: float | None = None
