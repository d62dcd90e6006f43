"""Which calls run a network, and what the network holds: buffers that DDP broadcasts, layers that mind their mode.

What is known is known from the classes of the submission and of torch; a network from anywhere else is UNKNOWN, and a
rule that asks stays mild. Nothing here knows ranks or loops.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable
from enum import Enum

from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import FUNCTIONS, VARIABLES, ancestors, name_of, walk
from grader.checks.source.training_loops import DDP, OTHER_WRAPPERS, Training
from grader.checks.source.values.sources import Values

_MODEL_NAME = re.compile(
    r"(^|_)(model|net|network|ddp|fsdp|classifier|backbone|encoder|decoder|student|generator|discriminator|resnet|cnn"
    r"|unet|gpt|transformer|module|learner|mlp)s?(_?(ddp|module|engine|wrapped|fn|dp|dist|eval|ema|[0-9]))?$",
    re.IGNORECASE,
)
_SHARDED = frozenset(n for n in OTHER_WRAPPERS if "fsdp" in n)
# Layers of torch.nn that keep running statistics, and those that act otherwise in training than in evaluation.
_BUFFERED = re.compile(r"BatchNorm|SyncBatchNorm")
_MOODY = re.compile(
    r"BatchNorm|Dropout|RReLU|MultiheadAttention|Transformer(Encoder|Decoder)?(Layer)?$|^dropout"
)
FUNCTIONAL_DROPOUTS = (
    "torch.nn.functional.dropout", "torch.nn.functional.dropout1d", "torch.nn.functional.dropout2d",
    "torch.nn.functional.dropout3d", "torch.nn.functional.alpha_dropout", "torch.nn.functional.feature_alpha_dropout",
    "torch.dropout", "torch.feature_dropout", "torch.alpha_dropout", "torch.feature_alpha_dropout",
)  # fmt: skip
# torchvision's networks without BatchNorm; of those, the ones that hold no buffer of another kind either.
_WITHOUT_BATCHNORM = re.compile(r"^(alexnet|vgg\d+|squeezenet\d_\d|vit_|swin_|convnext_)")
_NORMALISING = re.compile(
    r"torch\.nn\.(Lazy)?BatchNorm|torchvision\.models\.(resnet|resnext|wide_resnet|densenet|vgg\d+_bn)"
)
_LIBRARIES = ("torch.", "numpy.", "einops.", "tqdm.")
_MAX_CLASSES = 60
# Attributes that are called everywhere and are methods: following their objects is work for nothing.
_NO_NETWORKS = {
    "add_argument", "append", "argmax", "backward", "cpu", "cuda", "detach", "eval", "extend", "flatten", "float",
    "format", "get", "item", "items", "join", "long", "mean", "parameters", "reshape", "set_epoch", "size", "split",
    "state_dict", "step", "sum", "to", "tolist", "train", "update", "view", "write", "zero_grad",
}  # fmt: skip


class Holds(Enum):
    """Whether a network holds a kind of thing."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Networks:
    """Networks over all files."""

    def __init__(self, names: Names, calls: Calls, values: Values, training: Training) -> None:
        self._names, self._calls, self._values, self._training = names, calls, values, training
        self._callees: dict[ast.Call, ast.expr | None] = {}
        self._networks: dict[ast.expr, bool] = {}
        self._contents: dict[ast.AST, tuple[Holds, Holds]] = {}

    def called(self, call: ast.Call) -> ast.expr | None:
        """The network that a call runs (`model(x)`, `model.forward(x)`), None where it runs none."""
        func = self.callee(call)
        return func if func is not None and self.is_network(func) else None

    def callee(self, call: ast.Call) -> ast.expr | None:
        """What `called` would be, judged by the call's shape alone: nothing that is defined or named elsewhere."""
        if call not in self._callees:
            self._callees[call] = self._find_callee(call)
        return self._callees[call]

    def _find_callee(self, call: ast.Call) -> ast.expr | None:
        func: ast.expr = call.func
        if isinstance(func, ast.Attribute):
            if func.attr in _NO_NETWORKS:
                return None
            func = func.value if func.attr == "forward" else func
        if not isinstance(func, (*VARIABLES, ast.Subscript)) or not (call.args or call.keywords):
            return None
        if self._names.qualified(func) is not None or self._calls.targets(call):
            return None
        return func

    def is_network(self, node: ast.expr) -> bool:
        """Whether an expression is a network: built as one, wrapped as one, or called one where nobody can tell."""
        if node not in self._networks:
            self._networks[node] = self._judge_network(node)
        return self._networks[node]

    def _judge_network(self, node: ast.expr) -> bool:
        origins = self._values.origins(node)
        if any(self._builds_network(o) for o in origins):
            return True
        lost = all(isinstance(o, ast.arg | ast.Name | ast.Attribute | ast.For | ast.Call) for o in origins)
        known = any(isinstance(o, ast.Call) and self._not_network(o) for o in origins)
        return bool(origins) and lost and not known and bool(_MODEL_NAME.search(name_of(node)))

    def sharded(self, node: ast.expr) -> bool:
        """Whether an expression is a network whose parameters are sharded over the ranks (FSDP)."""
        if self.sharded_by_class(node):
            return True
        origins = {o for o in self._values.origins(node) if isinstance(o, ast.Call)}
        for name in _SHARDED:
            for call in self._calls.named(name) if name.endswith("fully_shard") else ():
                # `fully_shard(model)` changes the model itself and is used without its result.
                if call.args and origins & set(self._values.origins(call.args[0])):
                    return True
        return False

    def sharded_by_class(self, node: ast.expr) -> bool:
        """Whether an expression is a `FullyShardedDataParallel` module: its `state_dict()` gathers parameters, too."""
        made = [o for o in self._values.origins(node) if isinstance(o, ast.Call)]
        return any((self._names.qualified(o.func) or "").endswith(".FullyShardedDataParallel") for o in made)

    def buffers(self, node: ast.expr) -> Holds:
        """Whether a (wrapped) network has buffers that DDP broadcasts from rank 0 before a forward pass."""
        wraps = [o for o in self._values.origins(node) if o in self._training.wraps]
        silenced = [
            w for w in wraps if self._values.constant(self._calls.argument(w, "broadcast_buffers")) is False
        ]
        if wraps and len(silenced) == len(wraps):
            return Holds.NO
        return self._held(node)[0]

    def minds_mode(self, node: ast.expr) -> Holds:
        """Whether a network computes otherwise in training mode than in evaluation mode."""
        return self._held(node)[1]

    def normalises_alone(self, node: ast.expr) -> bool:
        """Whether a network surely keeps running statistics of the batches that it sees itself: BatchNorm's."""
        parts = {
            n
            for o in self._values.origins(node)
            for n in (self._parts(o) if isinstance(o, ast.Call) else ())
            if isinstance(n, (ast.Call, *VARIABLES))
        }
        calls = [n for n in parts if isinstance(n, ast.Call)]
        untracked = {
            c.func
            for c in calls
            if self._values.constant(self._calls.argument(c, "track_running_stats")) is False
        }
        names = {self._names.qualified(n) or "" for n in parts - untracked if isinstance(n, VARIABLES)}
        return any(_NORMALISING.match(n) for n in names) and not any("SyncBatchNorm" in n for n in names)

    def _builds_network(self, origin: ast.AST) -> bool:
        if not isinstance(origin, ast.Call):
            return False
        name = self._names.qualified(origin.func) or ""
        if name == DDP or name in OTHER_WRAPPERS or name == "torch.nn.parallel.DataParallel":
            return True
        if name.startswith("torchvision.models.") or name == "timm.create_model":
            return True
        if name.startswith("torch.nn.") and name.count(".") == 2:
            last = name.rpartition(".")[2]
            return last[:1].isupper() and not last.endswith(("Loss", "Parameter", "List", "Dict"))
        owner = self._calls.built_class(origin)
        return owner is not None and self.is_module(owner) and "loss" not in owner.name.lower()

    def _not_network(self, origin: ast.Call) -> bool:
        name = self._names.qualified(origin.func) or ""
        owner = self._calls.built_class(origin)
        is_plain = owner is not None and not self.is_module(owner) and not self._foreign_base(owner)
        return is_plain or name.startswith(("torch.optim", "torch.utils", "torch.distributed.get"))

    def is_module(self, owner: ast.ClassDef) -> bool:
        """Whether a class is one of networks or layers."""
        family = [owner, *self._calls.bases(owner)]
        family += [g for b in family[1:] for g in self._calls.bases(b)]
        named = [self._names.qualified(b) or "" for c in family for b in c.bases]
        return any(n.startswith("torch.nn.") or n.endswith("Module") for n in named)

    def _foreign_base(self, owner: ast.ClassDef) -> bool:
        return any(self._calls.definition(b) is None for b in owner.bases)

    def _held(self, node: ast.expr) -> tuple[Holds, Holds]:
        found: list[tuple[Holds, Holds]] = []
        for origin in self._values.origins(node):
            if origin not in self._contents:
                self._contents[origin] = (Holds.UNKNOWN, Holds.UNKNOWN)  # ends cycles
                self._contents[origin] = self._look_into(origin)
            found.append(self._contents[origin])
        return _worst(b for b, _ in found), _worst(m for _, m in found)

    def _look_into(self, origin: ast.AST) -> tuple[Holds, Holds]:
        if not isinstance(origin, ast.Call):
            return Holds.UNKNOWN, Holds.UNKNOWN
        name = self._names.qualified(origin.func) or ""
        if (name == DDP or name in OTHER_WRAPPERS or name == "torch.nn.parallel.DataParallel") and (
            origin.args or self._calls.argument(origin, "module") is not None
        ):
            inner = self._calls.argument(origin, "module") or origin.args[0]
            return self._held(inner)
        found = [self._layer(n) for n in self._parts(origin)]
        return _worst(b for b, _ in found), _worst(m for _, m in found)

    def _parts(self, origin: ast.Call) -> Iterable[ast.AST]:
        """The call that builds a network and all that is written in the classes and factories it goes through."""
        seen: set[ast.AST] = set()
        work: list[ast.AST] = [origin]
        while work and len(seen) < _MAX_CLASSES:
            current = work.pop()
            if current in seen:
                continue
            seen.add(current)
            for node in _written(current):
                yield node
                if not isinstance(node, (ast.Call, *VARIABLES)):
                    continue
                target = self._calls.definition(node.func if isinstance(node, ast.Call) else node)
                if isinstance(target, ast.ClassDef):
                    work += [target, *self._calls.bases(target)]
                elif isinstance(target, FUNCTIONS):
                    work.append(target)
                elif isinstance(node, ast.Name) and node is not current and isinstance(current, ast.Call):
                    # What was handed to a constructor: `nn.Sequential(*layers)`.
                    work += [o for o in self._values.origins(node) if isinstance(o, ast.Call | ast.List)]

    def _layer(self, node: ast.AST) -> tuple[Holds, Holds]:
        if isinstance(node, ast.Call) and name_of(node) == "register_buffer":
            # A buffer that only some configurations have (`if not flash:`) may be there or not.
            return Holds.UNKNOWN if self._conditional(node) else Holds.YES, Holds.NO
        if isinstance(node, ast.Attribute) and node.attr == "training":
            return Holds.NO, Holds.YES
        name = self._names.qualified(node) or "" if isinstance(node, VARIABLES) else ""
        last = name.rpartition(".")[2]
        if name.startswith("torchvision.models."):
            plain = _WITHOUT_BATCHNORM.match(last) and "_bn" not in last
            return (Holds.UNKNOWN if plain else Holds.YES), Holds.YES
        if name.startswith("torch.nn.") and name not in FUNCTIONAL_DROPOUTS:
            return (
                Holds.YES if _BUFFERED.search(last) else Holds.NO,
                Holds.YES if _MOODY.search(last) else Holds.NO,
            )
        if name in FUNCTIONAL_DROPOUTS:
            return Holds.NO, Holds.YES
        if isinstance(node, ast.Call) and self._stranger(node):
            return Holds.UNKNOWN, Holds.UNKNOWN
        return Holds.NO, Holds.NO

    def _conditional(self, node: ast.AST) -> bool:
        tree = self._names.tree(node)
        return any(isinstance(above, ast.If) for above in ancestors(tree.parent, node, FUNCTIONS))

    def _stranger(self, call: ast.Call) -> bool:
        """A call of something that was neither handed in nor is a library known to add no layers."""
        if self._calls.definition(call.func) is not None:
            return False
        name = self._names.qualified(call.func)
        if name is None:
            # Methods of objects (`self.fc(x)`) build nothing; a plain name nobody defines may build anything.
            return isinstance(call.func, ast.Name) and not self._names.lookup(call.func.id, call.func)
        known = name.startswith(_LIBRARIES) or name.partition(".")[0] in sys.stdlib_module_names
        return "." in name and not known


def _written(node: ast.AST) -> Iterable[ast.AST]:
    """All nodes in it; of a class without its other ways to be built (`from_pretrained`), which add no layers."""
    if not isinstance(node, ast.ClassDef):
        yield from walk(node)
        return
    for statement in node.body:
        decorators = statement.decorator_list if isinstance(statement, FUNCTIONS) else []
        if not any(name_of(d) in ("classmethod", "staticmethod") for d in decorators):
            yield from walk(statement)


def _worst(found: Iterable[Holds]) -> Holds:
    kinds = set(found)
    if Holds.YES in kinds:
        return Holds.YES
    return Holds.NO if kinds == {Holds.NO} else Holds.UNKNOWN
