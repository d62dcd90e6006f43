"""Which library object a name means: imports, aliases, star imports and modules of the same submission.

Answers with one canonical dotted name, so that `from torch.utils.data.distributed import DistributedSampler as DS`
and `torch.utils.data.DistributedSampler` are the same to a rule. Never imports what it names.
"""

from __future__ import annotations

import ast
import builtins
import sys
from functools import lru_cache

from grader.checks.source.syntax.nodes import DISPLAYS, UNKNOWN, VARIABLES, Definition, end, literal
from grader.checks.source.syntax.tree import Tree

# Public packages that a training script may use and that form no process group, whatever is asked of them.
_INNOCENT = {
    "PIL", "absl", "albumentations", "av", "click", "cv2", "datasets", "einops", "evaluate", "fire", "h5py",
    "hydra", "joblib", "librosa", "lmdb", "loguru", "matplotlib", "mlflow", "mpi4py", "nltk", "numpy", "omegaconf",
    "packaging", "pandas", "peft", "psutil", "pyarrow", "pynvml", "regex", "requests", "rich", "scipy", "seaborn",
    "sentencepiece", "setproctitle", "six", "skimage", "sklearn", "soundfile", "tensorboard", "tensorboardX",
    "termcolor", "tiktoken", "tokenizers", "torch", "torchaudio", "torchmetrics", "torchsummary", "torchtext",
    "torchvision", "tqdm", "wandb", "yaml", "yacs", "safetensors", "aim", "clearml", "comet_ml", "neptune",
    "swanlab", "visdom", "alive_progress", "tensorboard_logger",
}  # fmt: skip
# Those that are built for training on several GPUs: what a script calls of them may form the group.
_ABLE = {
    "accelerate", "apex", "kornia", "lightning", "lightning_fabric", "pytorch_lightning", "timm", "transformers",
}  # fmt: skip
_STAR_NAMES = {
    "torch.distributed": {
        "all_gather", "all_reduce", "barrier", "broadcast", "destroy_process_group", "gather", "get_rank",
        "get_world_size", "init_process_group", "is_initialized", "reduce", "scatter",
    },
    "torch.nn.parallel": {"DataParallel", "DistributedDataParallel"},
    "torch.utils.data": {"DataLoader", "DistributedSampler", "IterableDataset", "Subset", "random_split"},
    "torch.utils.data.distributed": {"DistributedSampler"},
    "torch.nn": {"DataParallel"},
    "torch.multiprocessing": {"Process", "spawn"},
}  # fmt: skip
_BUILTINS = frozenset(dir(builtins))
_MAX_MODULES = 5
"""Through so many modules of a submission a name is followed that each hands on to the next."""


@lru_cache(maxsize=4096)
def canonical(dotted: str) -> str:
    """One spelling for the objects that torch exports under several names."""
    if not dotted.startswith("torch."):
        return dotted
    head, _, last = dotted.rpartition(".")
    if head.startswith("torch.utils.data"):
        return f"torch.utils.data.{last}"
    if head.startswith("torch.nn.parallel") or dotted == "torch.nn.DataParallel":
        return f"torch.nn.parallel.{last}"
    if head == "torch.distributed.distributed_c10d":
        return f"torch.distributed.{last}"
    if head.startswith("torch.nn.modules"):
        return f"torch.nn.{last}"
    if head == "torch.multiprocessing.spawn":
        return f"torch.multiprocessing.{last}"
    return dotted


class Names:
    """Names of all files of one submission."""

    def __init__(self, trees: tuple[Tree, ...]) -> None:
        self.trees = trees
        self._only = trees[0] if len(trees) == 1 else None
        self._modules = {tree.module: tree for tree in trees}
        self._found: dict[tuple[ast.AST, str], list[Definition]] = {}
        self._starred: dict[tuple[Tree, str], list[Definition]] = {}
        self._known: dict[ast.AST, str | None] = {}
        known = _INNOCENT | _ABLE | sys.stdlib_module_names | {m.split(".")[0] for m in self._modules}
        self.foreign = tuple(
            sorted({i for tree in trees for i in tree.imports if i.split(".")[0] not in known})
        )
        """Imports of modules that are neither well known nor part of the submission: they may do anything."""
        self.able = tuple(sorted({i for tree in trees for i in tree.imports if i.split(".")[0] in _ABLE}))
        """Imports of libraries that form a process group where they are asked to."""

    def tree(self, node: ast.AST) -> Tree:
        """The file a node stands in."""
        if self._only is not None:
            return self._only
        for tree in self.trees:
            if node in tree.parent or node is tree.root:
                return tree
        raise ValueError("a node of no file of this submission")

    def knows(self, node: ast.AST) -> bool:
        """Whether a node stands in a file: what stands for an unknown value does not."""
        return self._only is not None or any(node in t.parent or node is t.root for t in self.trees)

    def lookup(self, name: str, node: ast.AST) -> list[Definition]:
        """Definitions that a name read at a node may mean: those of the innermost scope that binds it."""
        tree = self.tree(node)
        scope = tree.scope(node)
        key = (scope, name)
        if key not in self._found:
            self._found[key] = self._look_up(tree, scope, name)
        return self._found[key]

    def _look_up(self, tree: Tree, scope: ast.AST, name: str) -> list[Definition]:
        innermost = True
        while True:
            # A class body's names are seen by the body alone, not by its methods.
            if innermost or not isinstance(scope, ast.ClassDef):
                found = tree.definitions.get(scope, {}).get(name)
                if found:
                    return found
            if scope is tree.root:
                return self._by_star(tree, name)
            innermost, scope = False, tree.scope(scope)

    def qualified(self, node: ast.AST) -> str | None:
        """Canonical dotted name of what an expression names; None where it names no import, builtin or local."""
        if node in self._known:
            return self._known[node]
        if not isinstance(node, (*VARIABLES, ast.Call)) or node is UNKNOWN:
            return None
        self._known[node] = None  # ends `x = x.y` cycles
        self._known[node] = found = self._qualified(node)
        return found

    def local(self, dotted: str | None) -> ast.AST | None:
        """The function or class of this submission with that full name, followed through re-exports."""
        for _ in range(_MAX_MODULES if dotted else 0):
            found = self.module_value(dotted)
            if not found:
                return None
            if found[-1].kind in ("function", "class"):
                return found[-1].node
            dotted = found[-1].dotted
        return None

    def module_value(self, dotted: str | None) -> list[Definition]:
        """Definitions of a module-level variable of this submission, by its full name (`config.EPOCHS`)."""
        module, _, name = (dotted or "").rpartition(".")
        tree = self._modules.get(module)
        return self._at_top(tree, name) if tree else []

    def _at_top(self, tree: Tree, name: str) -> list[Definition]:
        return tree.definitions.get(tree.root, {}).get(name) or self._by_star(tree, name)

    def _by_star(self, tree: Tree, name: str) -> list[Definition]:
        """The import that a file's star imports stand for, of a name that one of their modules is known to hold."""
        key = (tree, name)
        if tree.stars and key not in self._starred:
            self._starred[key] = []  # ends files that import each other so
            for star, node in tree.stars.items():
                module = self._modules.get(star)
                own = module is not None and _is_public(module, name) and self._at_top(module, name)
                if own or name in _STAR_NAMES.get(star, ()):
                    dotted = f"{star}.{name}"
                    self._starred[key] = [Definition(name, node, None, (), "import", end(node), dotted)]
                    break
        return self._starred.get(key, [])

    def _handed_on(self, dotted: str) -> str:
        """What is found under a full name: a module of the submission may have it from elsewhere itself."""
        for _ in range(_MAX_MODULES):
            found = self.module_value(dotted) if dotted not in self._modules else []
            further = _imported(found) or self._alias(found)
            if not further:
                break
            dotted = further
        return canonical(dotted)

    def _alias(self, found: list[Definition]) -> str | None:
        """What `Loader = torch.utils.data.DataLoader` gives another name."""
        only = found[0] if len(found) == 1 else None
        plain = only is not None and only.kind == "assign" and not only.path
        return self.qualified(only.value) if plain and only and only.value else None

    def _qualified(self, node: ast.Name | ast.Attribute | ast.Call) -> str | None:
        if isinstance(node, ast.Call):
            return self._asked_for(node)
        if isinstance(node, ast.Attribute):
            return self._of(node.value, node.attr)
        found = self.lookup(node.id, node)
        if imported := _imported(found):
            return self._handed_on(imported)
        if not found:
            return node.id if node.id in _BUILTINS else None
        tree = self.tree(node)
        only = found[0]
        if only.kind in ("function", "class") and only in tree.definitions.get(tree.root, {}).get(
            node.id, ()
        ):
            return f"{tree.module}.{node.id}"
        return self._alias(found)

    def _of(self, owner: ast.expr, name: str) -> str | None:
        base = self.qualified(owner)
        return self._handed_on(f"{base}.{name}") if base else None

    def _asked_for(self, call: ast.Call) -> str | None:
        """What `getattr(torch.nn.parallel, "DistributedDataParallel")` gives back."""
        if len(call.args) != 2 or self.qualified(call.func) != "getattr":
            return None
        name = literal(call.args[1])
        return self._of(call.args[0], name) if isinstance(name, str) else None


def _imported(found: list[Definition]) -> str:
    """The full name of what a name is imported as, "" where it is not imported."""
    imports = [d.dotted for d in found if d.kind == "import"]
    # `try: from apex… except ImportError: from torch…`: torch is the one that rules know.
    return next((i for i in imports if i.startswith("torch")), imports[0] if imports else "")


def _is_public(module: Tree, name: str) -> bool:
    """Whether a star import takes a name along: one that `__all__` lists or, without it, that has no `_` in front."""
    lists = [d.value for d in module.definitions.get(module.root, {}).get("__all__", ())]
    if not lists:
        return not name.startswith("_")
    written = [value.elts for value in lists if isinstance(value, DISPLAYS)]
    # A list that is put together in another way may hold any name.
    return len(written) < len(lists) or any(
        isinstance(part, ast.Constant) and part.value == name for parts in written for part in parts
    )
