"""What the supervisor is told: one frozen record per run, as JSON on its input.

Nothing in it is secret: what seals the run's trace is drawn by the supervisor itself (`seal_key`).
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass

_IN_BRACES = re.compile(r"\{\w*\}")
MOST_TRACE_BYTES = 256 << 20
"""Of all ranks together: in memory they take eight times as much, and a core reads ten million bytes in a second."""


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """One run of one submission.

    Attributes:
        attempt: name of the attempt, letters, digits and dashes.
        launcher: `fork` (from the warm process), `interpreter` (one per rank, made warm before the clock starts, with
            a hash seed of its own), `torchrun` (the command) or `python` (the script once, which starts its ranks).
        nproc_per_node: ranks to start on each node.
        entry_point: script below `submission_dir`; argv: its arguments, see `arguments`.
        submission_dir: laid out, read-only by intent; data_dir: becomes $DATA_DIR; output_dir: becomes $OUTPUT_DIR,
            exists and is empty; scratch_dir: HOME, TMPDIR and caches of the ranks, exists and is empty.
        model_size: becomes $MODEL_SIZE; "": the variable is not there.
        gpus: UUIDs of this node's devices, in the order in which ranks count them; (): ranks see none.
        variables: what the site sets for its GPUs, name and value; what the launcher sets itself comes after them.
        record_dir: where the supervisor writes `record.json`, `trace/`, `logs/`, `stacks/`; ranks get no path to it.
        wall_s: wall-clock limit; silence_s: silence after which a deadlock is looked for; stack_gap_s: time between
            the two dumps that must agree.
        memory_bytes: limit of all ranks together (0: none); log_bytes: cap per stream and rank; trace_bytes: cap
            per rank, of which many ranks have less (`rank_trace_bytes`).
        seed: base of the ranks' different seeds.
        probe: False runs the script without the probe (measurements and oracle tests).
        sealed: the supervisor draws a key for the run, which seals what the probe tells and decides which steps it
            looks at closely; False: nothing is sealed, and which steps are looked at can be foretold.
        sampling_seed: of a run on several nodes, which have keys of their own and must look at the same steps.
        rank_uid: user and group that ranks become, once nothing of ours is open to them (0: they stay what we are).
        num_processes: processes and threads that the ranks' user may have (0: only the machine's own limit).
        contained: True where network and control group are this run's own, so that what they count is the run's.
        own_network: True where at least the network is.
        nnodes: nodes of the run, each with a supervisor of its own; node_rank: this one's number.
        master_addr, master_port: where the rendezvous store of node 0 is reached (port 0: the store is ours).
        interface: network interface that ranks talk through.
        shims: names of changes to PyTorch that stand in for GPUs (see `shims`).
        traced_steps: first and last optimizer step to be looked at line by line, after which ranks leave; None: none.
    """

    attempt: str
    launcher: str
    nproc_per_node: int
    entry_point: str
    argv: tuple[str, ...]
    submission_dir: str
    data_dir: str
    output_dir: str
    scratch_dir: str
    record_dir: str
    wall_s: float
    memory_bytes: int = 0
    log_bytes: int = 4 << 20
    trace_bytes: int = 64 << 20
    silence_s: float = 10.0
    stack_gap_s: float = 5.0
    seed: int = 0
    probe: bool = True
    sealed: bool = False
    sampling_seed: int = 0
    rank_uid: int = 0
    num_processes: int = 0
    contained: bool = False
    own_network: bool = False
    nnodes: int = 1
    node_rank: int = 0
    master_addr: str = "127.0.0.1"
    master_port: int = 0
    interface: str = "lo"
    model_size: str = ""
    gpus: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    traced_steps: tuple[int, int] | None = None
    shims: tuple[str, ...] = ()

    @property
    def world_size(self) -> int:
        """Ranks of all nodes."""
        return self.nnodes * self.nproc_per_node

    @property
    def rank_trace_bytes(self) -> int:
        """Cap of one rank's trace: who judges reads those of all ranks at once."""
        return min(self.trace_bytes, MOST_TRACE_BYTES // self.world_size)

    @property
    def ranks(self) -> range:
        """Global ranks of this node."""
        first = self.node_rank * self.nproc_per_node
        return range(first, first + self.nproc_per_node)

    def local_rank(self, rank: int) -> int:
        """Number of a global rank of this node on this node."""
        return rank - self.ranks.start

    def arguments(self, master_port: int | str) -> tuple[str, ...]:
        """`argv` with the names in braces filled in."""
        values = {
            "{nproc}": self.nproc_per_node,
            "{nnodes}": self.nnodes,
            "{node_rank}": self.node_rank,
            "{world_size}": self.world_size,
            "{master_addr}": self.master_addr,
            "{master_port}": master_port,
        }
        return tuple(
            _IN_BRACES.sub(lambda found: str(values.get(found[0], found[0])), text) for text in self.argv
        )

    def name(self, rank: int) -> str:
        """A rank in a sentence; with its node where there are several."""
        return f"rank {rank} on node {self.node_rank}" if self.nnodes > 1 else f"rank {rank}"

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> LaunchSpec:
        """Inverse of `to_json`; raises TypeError or ValueError for anything else."""
        fields = json.loads(text)
        fields["argv"] = tuple(fields["argv"])
        fields["gpus"] = tuple(fields.get("gpus", ()))
        fields["shims"] = tuple(fields.get("shims", ()))
        fields["variables"] = tuple((name, value) for name, value in fields.get("variables", ()))
        steps = fields.get("traced_steps")
        fields["traced_steps"] = tuple(steps) if steps is not None else None
        return cls(**fields)
