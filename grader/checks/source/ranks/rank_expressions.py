"""Which expressions hold a rank: from the process group, the launcher's environment, a spawned function's parameter.

`SURE` where the value was followed to its source, `NAMED` where it is called a rank, `WEAK` where its name is one that
some scripts give to ranks (`gpu`). It never decides
what a comparison with a rank means; `rank_guards` does.
"""

from __future__ import annotations

import ast
import re
from enum import IntEnum

from grader.checks.source.calls.sites import SPAWNS, Calls
from grader.checks.source.libraries.names import Names
from grader.checks.source.ranks.rank_offsets import RankOffsets
from grader.checks.source.syntax.nodes import DISPLAYS, FUNCTIONS, READS, UNKNOWN, literal, name_of
from grader.checks.source.values.sources import Piece, Values

_INIT = "torch.distributed.init_process_group"
_RANK_CALLS = {
    "torch.distributed.get_rank", "torch.distributed.get_node_local_rank", "torch.distributed.get_group_rank",
    "horovod.torch.rank", "horovod.torch.local_rank", "ignite.distributed.get_rank",
    "ignite.distributed.get_local_rank", "torch_xla.core.xla_model.get_ordinal",
}  # fmt: skip
_WORLD_CALLS = {"torch.distributed.get_world_size", "torch.cuda.device_count", "horovod.torch.size"}
RANK_VARIABLES = {
    "RANK", "LOCAL_RANK", "GROUP_RANK", "SLURM_PROCID", "SLURM_LOCALID", "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK",
}  # fmt: skip
WORLD_VARIABLES = {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"}
_RANK_NAME = re.compile(
    r"^_?((global|local|world|node|ddp|ddp_local|dist|proc|process|my|g|l|cur|current)_?)?rank(_?id)?$|^(local_)?process_index$",
    re.IGNORECASE,
)
_DEVICE_NAME = re.compile(
    r"^_?(gpu|gpu_id|gpu_idx|device_id|local_gpu|proc_id|process_id|local_device)$",
    re.IGNORECASE,
)
_WORLD_NAME = re.compile(
    r"^_?(ddp_|global_|n_?)?(world(_size)?|n_?procs|num_replicas|n_?gpus|num_gpus|ngpus_per_node|num_processes)$",
    re.IGNORECASE,
)
PLACING = frozenset({"device", "dtype", "non_blocking", "map_location"})
"""Arguments that say where a value lies, not what it is."""
_ASKING = ("is_", "has_")
"""Functions that answer yes or no, such as `torch.cuda.is_available`: what they say of the machine is no rank."""
# Functions that leave a rank a rank.
_SAME = {"int", "str", "repr", "float", "format", "torch.device", "min", "max", "abs", "torch.tensor"}


class Strength(IntEnum):
    """How sure it is that a value is (or shows) a rank."""

    NO = 0
    WEAK = 1
    NAMED = 2
    SURE = 3


class Ranks:
    """Rank and world size values over all files."""

    def __init__(self, names: Names, calls: Calls, values: Values) -> None:
        self._names, self._calls, self._values = names, calls, values
        self._known: dict[tuple[ast.AST, str], Strength] = {}
        self._given: dict[str, frozenset[ast.AST]] = {}
        self._offsets = RankOffsets(values, self.rank)

    def rank(self, node: ast.AST) -> Strength:
        """Whether an expression is a rank or simple arithmetic on one (`rank + 1`, `rank % 8`)."""
        return self._ask(node, "rank", 0)

    def world(self, node: ast.AST) -> Strength:
        """Whether an expression is a number of processes."""
        return self._ask(node, "world", 0)

    def moves_on(self, node: ast.AST) -> bool:
        """Whether a position is in an expression that begins at a rank's own place, and that all ranks move on."""
        return self._offsets.moves_on(node)

    def called_rank(self, parameter: ast.arg) -> bool:
        """Whether a parameter is called as ranks are."""
        return bool(self._by_name(parameter, "rank"))

    def kind(self, node: ast.AST) -> str:
        """`global` or `local` where every source of a rank says which of the two it is; "" otherwise.

        A rank that something was done to (`rank % 8`) is neither.
        """
        kinds = {self._kind(o) for o in self._values.origins(node)}
        return kinds.pop() if len(kinds) == 1 else ""

    def _kind(self, origin: ast.AST) -> str:
        if isinstance(origin, ast.Call) and self._names.qualified(origin.func) == "int" and origin.args:
            return self.kind(origin.args[0])
        if isinstance(origin, ast.Call):
            name = self._names.qualified(origin.func) or ""
            if name in ("torch.distributed.get_rank", "horovod.torch.rank", "ignite.distributed.get_rank"):
                return "" if origin.args or origin.keywords else "global"  # of a group: its own numbers
            if name in _RANK_CALLS:
                return "local" if "local" in name else ""
            if name == "" and name_of(origin) == "get_local_rank":
                return ""  # of a device mesh: the place in one of its dimensions
        variable = self.environment(origin)
        if variable in RANK_VARIABLES:
            local = "LOCAL" in variable
            return "local" if local else ("" if variable == "GROUP_RANK" else "global")
        return "local" if "local_rank" in name_of(origin).lower() and not variable else ""

    def shows_rank(self, node: ast.AST, *, by_name: bool = True) -> bool:
        """Whether a text, path, device or small display of values has the rank in it.

        With `by_name=False` a name that only some scripts give to ranks (`gpu`, which may list several) is not enough.
        """
        return self._ask(node, "text", 0) > (Strength.NO if by_name else Strength.WEAK)

    def environment(self, node: ast.AST) -> str:
        """Name of the environment variable an expression reads, "" where it reads none."""
        key: ast.AST | None = None
        if isinstance(node, ast.Subscript):
            if self._names.qualified(node.value) == "os.environ" or self._copies_environment(node.value):
                key = node.slice
        elif isinstance(node, ast.Call) and self._names.qualified(node.func) in (
            "os.environ.get",
            "os.getenv",
        ):
            key = node.args[0] if node.args else None
        value = self._values.constant(key)
        return value if isinstance(value, str) else ""

    def _copies_environment(self, node: ast.AST) -> bool:
        """`{key: os.environ[key] for key in (…)}`, as many scripts begin."""
        if not isinstance(node, ast.Name):
            return False
        made = [o.value for o in self._values.origins(node) if isinstance(o, ast.DictComp)]
        return any(
            isinstance(m, ast.Subscript) and self._names.qualified(m.value) == "os.environ" for m in made
        )

    def _ask(self, node: ast.AST, what: str, depth: int) -> Strength:
        key = (node, what)
        if key not in self._known:
            if depth > 12:
                return Strength.NO
            self._known[key] = Strength.NO
            self._known[key] = self._judge(node, what, depth + 1)
        return self._known[key]

    def _judge(self, node: ast.AST, what: str, depth: int) -> Strength:
        if isinstance(node, (*READS, ast.Call)) and self._starts_group(node, what):
            return Strength.SURE
        if isinstance(node, READS):
            return self._variable(node, what, depth)
        if isinstance(node, ast.Call):
            return self._call(node, what, depth)
        parts: list[ast.AST] = []
        if isinstance(node, ast.BinOp):
            parts = [node.left, node.right]
            written = isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant | ast.JoinedStr)
            if what != "text" and (written or (what == "rank" and self._offsets.gone(node))):
                parts = []
        elif isinstance(node, ast.IfExp):
            parts = [node.body, node.orelse]
        elif isinstance(node, ast.BoolOp):
            parts = list(node.values)
        elif isinstance(node, ast.NamedExpr | ast.Starred | ast.FormattedValue | ast.UnaryOp):
            inner = node.operand if isinstance(node, ast.UnaryOp) else node.value
            parts = [] if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else [inner]
        elif what == "text" and isinstance(node, ast.JoinedStr | ast.Tuple | ast.List | ast.Dict):
            parts = [*(node.elts if isinstance(node, DISPLAYS) else node.values)]
        return max((self._ask(p, what, depth) for p in parts), default=Strength.NO)

    def _starts_group(self, node: ast.AST, what: str) -> bool:
        """Whether a value is what the group is started with as this process's rank, or as their number.

        That is what it is then, wherever it comes from and whatever it is called; a number that is written down is not.
        """
        argument = "world_size" if what == "world" else "rank"
        if argument not in self._given:
            given = [self._calls.argument(call, argument) for call in self._calls.named(_INIT)]
            sources = {p for g in given if g is not None and g is not UNKNOWN for p in self._values.pieces(g)}
            self._given[argument] = frozenset(
                s for s in sources if isinstance(s, ast.expr | ast.arg | Piece) and literal(s) is UNKNOWN
            )
        return bool(self._given[argument]) and not self._given[argument].isdisjoint(self._values.pieces(node))

    def _variable(self, node: ast.Name | ast.Attribute | ast.Subscript, what: str, depth: int) -> Strength:
        variable = self.environment(node)
        if variable:
            return _of_variable(variable, what)
        if what != "world" and self._values.filled.has(node):
            return Strength.NO  # one rank's number, which all have been told
        best = Strength.NO
        origins = self._values.origins(node)
        if isinstance(node, ast.Attribute) and all(_is_default(o) for o in origins):
            # A default of its class; what counts is what somebody puts there.
            stored = (d.value for t in self._names.trees for d in t.attributes.get(node.attr, ()))
            best = max((self._ask(v, what, depth) for v in stored if v is not None), default=Strength.NO)
        unknown = (ast.Call, ast.Subscript, ast.GeneratorExp, ast.ListComp)
        if any(isinstance(o, unknown) and not name_of(o).startswith(_ASKING) for o in origins):
            # What an unknown call returns is what it was named.
            best = min(self._by_name(node, what), Strength.NAMED)
        for origin in origins:
            if origin is node or isinstance(origin, ast.arg | ast.Attribute | ast.Name):
                best = max(best, self._by_name(origin, what))
            elif isinstance(origin, ast.expr):
                best = max(best, self._ask(origin, what, depth))
            elif isinstance(origin, ast.For | ast.comprehension):
                best = max(best, self._numbered(origin, node, what))
            elif isinstance(origin, ast.AugAssign):
                # `rank += local_rank`: a rank as much as what was added to it.
                best = max(
                    best, min(self._by_name(node, what), Strength.NAMED), self._ask(origin.value, what, depth)
                )
        return best

    def _numbered(self, loop: ast.For | ast.comprehension, node: ast.AST, what: str) -> Strength:
        """`for rank in range(n): Process(target=worker, args=(rank, …))`: the loop numbers the processes it starts."""
        if what == "world":
            return Strength.NO
        tree = self._names.tree(loop)
        # What a comprehension repeats stands beside its `for`.
        repeated = loop if isinstance(loop, ast.For) else tree.parent[loop]
        starts = any(
            self._names.tree(s.call) is tree and tree.inside(s.call, repeated)
            for s in self._calls.spawn_sites
        )
        counts = isinstance(loop.iter, ast.Call) and self._names.qualified(loop.iter.func) == "range"
        if starts and counts and isinstance(loop.target, ast.Name):
            return Strength.SURE
        return min(self._by_name(node, what), Strength.WEAK)

    def _by_name(self, origin: ast.AST, what: str) -> Strength:
        name = key_or_name(origin)
        if what == "world":
            return Strength.NAMED if _WORLD_NAME.match(name) else Strength.NO
        if _RANK_NAME.match(name):
            return Strength.NAMED
        return Strength.WEAK if _DEVICE_NAME.match(name) else Strength.NO

    def _call(self, node: ast.Call, what: str, depth: int) -> Strength:
        variable = self.environment(node)
        if variable:
            return _of_variable(variable, what)
        name = self._names.qualified(node.func)
        last = node.func.attr if isinstance(node.func, ast.Attribute) else (name or "").rpartition(".")[2]
        if what == "text" and name == "os.getpid":
            return Strength.SURE
        if name in _RANK_CALLS or last == "Get_rank":
            return Strength.NO if what == "world" else Strength.SURE
        if name in _WORLD_CALLS or last == "Get_size":
            return Strength.SURE if what == "world" else Strength.NO
        if name in _SAME or last in ("format", "join", "item", "strip", "device"):
            parts: list[ast.AST] = [
                *node.args, *(k.value for k in node.keywords if k.arg not in PLACING or _kept(what, name))
            ]  # fmt: skip
            if isinstance(node.func, ast.Attribute) and last == "item":
                parts.append(node.func.value)
            if name in _SAME or what == "text" or last == "item":
                return max((self._ask(p, what, depth) for p in parts), default=Strength.NO)
        if what == "text" and last in ("Path", "PurePath"):
            return max((self._ask(p, what, depth) for p in node.args), default=Strength.NO)
        if what == "text" and name is not None and name.startswith("os.path."):
            return max((self._ask(p, what, depth) for p in node.args), default=Strength.NO)
        if name in SPAWNS:
            return Strength.NO if what == "world" else Strength.SURE
        origins = self._values.origins(node)
        if origins != (node,):
            return max(
                (self._ask(o, what, depth) for o in origins if isinstance(o, ast.expr)), default=Strength.NO
            )
        if not any(isinstance(t, FUNCTIONS) for t in self._calls.targets(node)):
            tail = last.removeprefix("get_")
            if what == "world":
                return Strength.NAMED if _WORLD_NAME.match(tail) else Strength.NO
            return Strength.NAMED if _RANK_NAME.match(tail) else Strength.NO
        return Strength.NO


def _of_variable(variable: str, what: str) -> Strength:
    wanted = WORLD_VARIABLES if what == "world" else RANK_VARIABLES
    return Strength.SURE if variable in wanted else Strength.NO


def _kept(what: str, name: str | None) -> bool:
    """Whether a text tells where a value lies: a device does, a tensor's number does not."""
    return what == "text" and name != "torch.tensor"


def _is_default(value: ast.AST) -> bool:
    """`None`, `0`, `-1`."""
    return isinstance(value.operand if isinstance(value, ast.UnaryOp) else value, ast.Constant)


def key_or_name(node: ast.AST) -> str:
    """What a value is called: `rank` in `options.rank` and in `options["rank"]`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value if isinstance(node.slice.value, str) else ""
    return name_of(node)
