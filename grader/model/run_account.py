"""The account of one run that a task's `examine(left, run)` is given: what each rank did, and with whom.

Numbers by name, as in `run["wall_s"]`, and lists of small records. All of it is data for JSON: it crosses into the
scorer's container. World size, ending and times were seen from outside; the rest was told by the probe in the ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_MESSAGES = ("send", "isend", "send_object_list"), ("recv", "irecv", "recv_object_list")
_COALESCED = "_coalesced"


@dataclass(frozen=True, slots=True)
class RankAccount:
    """What one rank did.

    Attributes:
        rank: which.
        complete: it told of everything, to the end of its script; else calls, updates and passes may be missing.
        backend: of its process group; "" where it joined none.
        wrappers: `ddp`, `fsdp`, `fsdp2`, `data_parallel`: what it wrapped models in, in order. What those exchange on
            their own is in no list of exchanges.
        num_collectives: what its process group ran in all, wrappers' own included; None where that was not told.
    """

    rank: int
    complete: bool
    backend: str
    wrappers: tuple[str, ...]
    num_collectives: int | None


@dataclass(frozen=True, slots=True)
class Exchange:
    """All calls of one collective, or of messages to or from one rank, that one rank made at one line.

    Attributes:
        rank: who called.
        name: of the function of `torch.distributed` (`all_reduce`, `isend`; what `batch_isend_irecv` begins counts as
            `isend` and `irecv`), or of the store (`store.set`).
        calls: how often.
        bytes: of the tensors that the rank put in or, of a message, received; None where that isn't known (objects).
        among: ranks of the process group.
        peer: the other rank of a message, None where it isn't known or it is no message.
        path, line, function: where the script called it; "" and 0 where it was a library, and nobody knows for whom.
        largest: absolute value of the numbers that the rank put in, 0 where these were zeros alone; None where that is
            not known of every call (objects, tensors on a device, a great many calls), or nothing was put in.
    """

    rank: int
    name: str
    calls: int
    bytes: int | None
    among: tuple[int, ...]
    peer: int | None = None
    path: str = ""
    line: int = 0
    function: str = ""
    largest: float | None = None

    @property
    def where(self) -> str:
        """`train.py:41`, for sentences."""
        return f"{self.path}:{self.line}" if self.path else "a library"

    @property
    def sends(self) -> bool:
        """A message to another rank."""
        return self.name in _MESSAGES[0]

    @property
    def receives(self) -> bool:
        """A message from another rank."""
        return self.name in _MESSAGES[1]


@dataclass(frozen=True, slots=True)
class UpdateAccount:
    """The steps that one rank took with one optimizer.

    Attributes:
        rank, optimizer: whose, and its number in that rank, in order of first steps.
        kind: its class; "" for weights that the script changed without an optimizer.
        count, samples: steps, and samples fed to models in training for them.
        first_rate, highest_rate, last_rate: learning rates of its first group of parameters; None where it has none.
    """

    rank: int
    optimizer: int
    kind: str
    count: int
    samples: int
    first_rate: float | None
    highest_rate: float | None
    last_rate: float | None


@dataclass(frozen=True, slots=True)
class PassAccount:
    """One pass of one rank over one `DataLoader`.

    Attributes:
        rank: whose.
        purpose: `training` (steps lie between its batches), `validation` (the model was evaluated) or `other`.
        dataset, split: class of the data set, and `train`, `validation` or None as it says itself.
        epoch: what its sampler was told by `set_epoch`; None where there is none.
        batches, samples, distinct: delivered; how many different samples that were, None where indices aren't known.
        batch_samples: samples in most of its batches.
        ended: True where the loader ran dry, False after a `break`, None where nobody knows.
        path, line: where the loader was built.
    """

    rank: int
    purpose: str
    dataset: str
    split: str | None
    epoch: int | None
    batches: int
    samples: int
    distinct: int | None
    ended: bool | None
    path: str = ""
    line: int = 0
    batch_samples: int = 0


@dataclass(frozen=True)
class RunAccount(Mapping[str, float]):
    """One run; as a mapping, its numbers by name (`grader.evaluate.circumstances` names them).

    Attributes:
        numbers: `world_size`, `wall_s`, `cpu_s`, `steps`, `samples`, `device_bytes`, `num_train`, `steps_of_<B>`, …
        ending: `completed`, `crashed`, `deadlocked`, `timed_out` or `out_of_memory`.
        ranks: one for each rank that was started, in order.
        exchanges: everything that the script had ranks exchange, in order of ranks and first calls.
        updates, passes: in order of ranks.
        gaps: sentences on what the account may lack; where there are any, absence proves nothing.
    """

    numbers: Mapping[str, float] = field(default_factory=dict)
    ending: str = "completed"
    ranks: tuple[RankAccount, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    updates: tuple[UpdateAccount, ...] = ()
    passes: tuple[PassAccount, ...] = ()
    gaps: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> float:
        return self.numbers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def world_size(self) -> int:
        """Ranks that were started."""
        return int(self.numbers.get("world_size", len(self.ranks)))

    def collectives(self, *names: str) -> tuple[Exchange, ...]:
        """What is neither a message nor a call of the store: all of it, or what has one of these names.

        `all_reduce` finds `all_reduce_coalesced`, too. `barrier` is one as well, though it carries nothing.
        """
        return tuple(
            one
            for one in self.exchanges
            if not (one.sends or one.receives or one.name.startswith("store."))
            and (not names or one.name.removesuffix(_COALESCED) in names)
        )

    @property
    def messages(self) -> tuple[Exchange, ...]:
        """What one rank sent to one other, and what it received of one."""
        return tuple(one for one in self.exchanges if one.sends or one.receives)

    @classmethod
    def silent(cls, world_size: int = 2) -> RunAccount:
        """The account of a run whose ranks told nothing: what an `examine()` has to get by with, too."""
        ranks = range(world_size)
        numbers = dict.fromkeys(("steps", "samples", "device_bytes"), 0.0) | {
            "world_size": float(world_size),
            "wall_s": 1.0,
            "cpu_s": 1.0,
            "num_train": 1.0,
        }
        return cls(
            numbers,
            ending="crashed",
            ranks=tuple(RankAccount(rank, False, "", (), None) for rank in ranks),
            gaps=tuple(f"Rank {rank} told nothing." for rank in ranks),
        )

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> RunAccount:
        """The account of which `dataclasses.asdict` made this, on its way through JSON or not."""
        records = {
            "ranks": RankAccount,
            "exchanges": Exchange,
            "updates": UpdateAccount,
            "passes": PassAccount,
        }
        lists = {
            name: tuple(kind(**_tuples(one)) for one in told.get(name, ())) for name, kind in records.items()
        }
        return cls(told.get("numbers", {}), told.get("ending", ""), **lists, gaps=tuple(told.get("gaps", ())))


def _tuples(record: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in record.items()}
