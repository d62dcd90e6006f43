"""Random numbers in the text: which generators are seeded, alike on all ranks or not, and which calls draw from them.

A script that never seeds draws differently on every rank; one that seeds by a constant draws alike. Whether either is
a fault is the rules' matter. Seeds set by code that was not handed in count as set, and nobody knows to what.
"""

from __future__ import annotations

import ast

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import UNKNOWN, name_of, start
from grader.checks.source.values.seeds import Seeded, drawn_apart, is_none, seeded

_SEEDS = {
    "torch.manual_seed": "torch", "torch.random.manual_seed": "torch", "torch.seed": "own",
    "numpy.random.seed": "numpy", "random.seed": "python",
}  # fmt: skip
_NUMPY = {
    "permutation",
    "shuffle",
    "choice",
    "rand",
    "randn",
    "randint",
    "random",
    "uniform",
    "normal",
    "random_sample",
}
_TORCH = {
    "rand",
    "randn",
    "randint",
    "randperm",
    "normal",
    "bernoulli",
    "multinomial",
    "rand_like",
    "randn_like",
}
_PYTHON = {
    "random",
    "shuffle",
    "sample",
    "choice",
    "choices",
    "randint",
    "uniform",
    "gauss",
    "randrange",
    "normalvariate",
}
_ORDERING = {
    "torch.randperm", "numpy.random.permutation", "numpy.random.shuffle", "random.shuffle", "random.sample",
    "numpy.random.choice",
}  # fmt: skip
_WITH_STATE = {
    "sklearn.model_selection.train_test_split": False, "sklearn.model_selection.ShuffleSplit": False,
    "sklearn.model_selection.StratifiedShuffleSplit": False, "sklearn.model_selection.KFold": True,
    "sklearn.model_selection.StratifiedKFold": True, "sklearn.utils.shuffle": False,
    "sklearn.utils.resample": False,
}  # fmt: skip
"""Functions that take `random_state`; True for those that shuffle only where they are told to."""
RANDOM_SPLIT = "torch.utils.data.random_split"


class Seeding:
    """Seeds and draws of one script."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._seeds: dict[str, set[Seeded]] = {}
        self.by_rank: list[ast.Call] = []
        """Calls that seed with the rank."""
        self.alike: list[ast.Call] = []
        """Calls that seed all ranks alike."""
        named = script.called_like(lambda name: "seed" in name.lower())
        seeding = {*named, *script.calls(*_SEEDS)}
        for call in script.all_calls() if seeding else ():
            if call in seeding:
                self._note(call)

    @property
    def kept_by_rank(self) -> list[ast.Call]:
        """Those of `by_rank` that no later seed undoes, the same on all ranks and set wherever the first one was."""
        return [c for c in self.by_rank if not any(self._undoes(later, c) for later in self.alike)]

    def of(self, family: str) -> Seeded:
        """State of a global generator: of `torch`, `numpy` or `python`."""
        found = self._seeds.get(family, set()) | self._seeds.get("all", set())
        for answer in (Seeded.UNKNOWN, Seeded.ALIKE, Seeded.BY_RANK):
            if answer in found:
                return answer
        return Seeded.NEVER

    def generator(self, node: ast.expr) -> Seeded:
        """State of a generator object: `torch.Generator().manual_seed(0)`, `np.random.default_rng(seed)`."""
        seeds: list[ast.expr] = []
        for part in self._script.values.closure(node):
            if not isinstance(part, ast.Call):
                continue
            name = self._script.names.qualified(part.func) or ""
            if name.rpartition(".")[2] in ("default_rng", "RandomState", "Random", "PRNGKey"):
                if not part.args and not part.keywords:
                    return Seeded.NEVER
                seeds += arguments_of(part)
            elif name_of(part) == "manual_seed":
                seeds += part.args
        if isinstance(node, ast.Name | ast.Attribute):
            seeds += self._seeded_later(name_of(node))
        if not seeds:
            origins = self._script.values.origins(node)
            bare = any(
                self._script.names.qualified(o.func) == "torch.Generator"
                for o in origins
                if isinstance(o, ast.Call)
            )
            return Seeded.NEVER if bare else Seeded.UNKNOWN
        states = {seeded(self._script, s) for s in seeds}
        return Seeded.BY_RANK if Seeded.BY_RANK in states else states.pop()

    def drawn(self, call: ast.Call) -> tuple[str, Seeded]:
        """What a call draws from, in words, and the state of that; ("", …) for a call that draws nothing."""
        name = self._script.names.qualified(call.func) or ""
        head, _, last = name.rpartition(".")
        if name == RANDOM_SPLIT or (head == "torch" and last in _TORCH):
            given = self._script.argument(call, "generator")
            if given is not None and not is_none(given):
                return "its generator", Seeded.UNKNOWN if given is UNKNOWN else self.generator(given)
            return "torch's global generator", self.of("torch")
        if name in _WITH_STATE:
            shuffles = self._script.argument(call, "shuffle")
            says = None if shuffles is None else self._script.values.constant(shuffles)
            if says is False or (_WITH_STATE[name] and says is not True):
                return "", Seeded.UNKNOWN
            given = self._script.argument(call, "random_state")
            if given is not None and not is_none(given):
                return "`random_state`", Seeded.UNKNOWN if given is UNKNOWN else seeded(self._script, given)
            return "numpy's global generator", self.of("numpy")
        if head == "numpy.random" and last in _NUMPY:
            return "numpy's global generator", self.of("numpy")
        if head == "random" and last in _PYTHON:
            return "Python's global generator", self.of("python")
        if isinstance(call.func, ast.Attribute) and not name and self._of_table(call, call.func):
            seeds = [k.value for k in call.keywords if k.arg in ("random_state", "seed", "generator")]
            if seeds and not is_none(seeds[0]):
                return "its seed", seeded(self._script, seeds[0])
            return "numpy's global generator", self.of("numpy")
        if (
            isinstance(call.func, ast.Attribute)
            and not name
            and call.func.attr in ("permutation", "shuffle", "choice")
        ):
            for origin in self._script.values.origins(call.func.value):
                made = self._script.names.qualified(origin.func) if isinstance(origin, ast.Call) else ""
                if (made or "").rpartition(".")[2] in ("default_rng", "RandomState", "Random"):
                    return "its generator", self.generator(call.func.value)
        return "", Seeded.UNKNOWN

    def orders(self, call: ast.Call) -> bool:
        """Whether a call puts things in a random order, or picks some of them."""
        name = self._script.names.qualified(call.func)
        if name in _ORDERING or name in ("sklearn.utils.shuffle", "sklearn.utils.resample"):
            return True
        return not name and isinstance(call.func, ast.Attribute) and bool(self.drawn(call)[0])

    def splits(self, call: ast.Call) -> bool:
        """Whether a call divides data into parts at random."""
        name = self._script.names.qualified(call.func) or ""
        if name == RANDOM_SPLIT or name.startswith("sklearn.model_selection."):
            return True
        return not name and name_of(call) == "train_test_split" and bool(self.drawn(call)[0])

    def all_splits(self) -> list[ast.Call]:
        """All such calls, in the order of the text."""
        script = self._script
        likely = {*script.calls(RANDOM_SPLIT), *script.called("train_test_split")}
        likely |= {call for _, call in script.calls_under("sklearn.model_selection.")}
        return [call for call in script.all_calls() if call in likely and self.splits(call)] if likely else []

    def _of_table(self, call: ast.Call, func: ast.Attribute) -> bool:
        """`frame.sample(frac=1)` of pandas; `train_test_split` and `shuffle` of Hugging Face data sets."""
        if func.attr == "sample":
            return any(k.arg == "frac" for k in call.keywords)
        if func.attr not in ("train_test_split", "shuffle"):
            return False
        parts = self._script.values.closure(func.value)
        made = (self._script.names.qualified(p.func) or "" for p in parts if isinstance(p, ast.Call))
        return any(m.startswith("datasets.") for m in made)

    def _note(self, call: ast.Call) -> None:
        name = self._script.names.qualified(call.func) or ""
        family = _SEEDS.get(name)
        given = call.args[0] if call.args else next((k.value for k in call.keywords), None)
        if family == "own":
            return
        if family is None:
            if (
                "seed" not in name_of(call).lower()
                or self._script.graph.targets(call)
                or name.startswith(("torch.", "numpy."))
            ):
                return
            if (
                isinstance(call.func, ast.Attribute)
                and not name
                and call.func.attr in ("manual_seed", "seed", "initial_seed")
            ):
                return  # of an object: `generator.manual_seed(…)`
            family = "all"
        states = [Seeded.UNKNOWN if family == "all" else Seeded.NEVER]
        if given is not None:
            states = self._given(given, 3)
        apart = [k.value for k in call.keywords if k.arg in ("workers", "device_specific")]
        if family == "all" and any(self._script.values.constant(a) is True for a in apart):
            states = [Seeded.BY_RANK]  # Lightning and Accelerate then seed each rank or worker differently
        for state in states:
            (self.by_rank if state is Seeded.BY_RANK else self.alike).append(call)
            self._seeds.setdefault(family, set()).add(state)

    def _undoes(self, later: ast.Call, call: ast.Call) -> bool:
        names, tree = self._script.names, self._script.names.tree(call)
        if names.tree(later) is not tree or tree.function(later) is not tree.function(call):
            return False
        same = names.qualified(later.func) == names.qualified(call.func) and later not in self.by_rank
        return same and start(later) > start(call) and tree.inside(call, tree.parent[tree.statement(later)])

    def _given(self, node: ast.expr, depth: int) -> list[Seeded]:
        """States for each place that hands a seed to the function that sets it: `set_seed(0)`, `set_seed(0 + rank)`."""
        if depth and isinstance(node, ast.Name):
            found = self._script.scopes.reaching(node.id, node)
            function = self._script.names.tree(node).function(node)
            if function is not None and found and all(d.kind == "parameter" for d in found):
                bound = [
                    self._script.graph.bound(s, function, node.id) for s in self._script.graph.sites(function)
                ]
                given = [b for b in bound if b is not None and b is not UNKNOWN]
                if given and len(given) == len(bound):
                    return [state for g in given for state in self._given(g, depth - 1)]
        return [seeded(self._script, node)]

    def apart(self, call: ast.Call) -> list[ast.stmt]:
        """Where the seed of what a call draws from gets another number on each rank."""
        given = self._script.argument(call, "generator")
        return (
            drawn_apart(self._script, self._seeded_later(name_of(given)))
            if isinstance(given, ast.Name)
            else []
        )

    def _seeded_later(self, name: str) -> list[ast.expr]:
        """Seeds given to an object of that name: `g = torch.Generator()`, `g.manual_seed(0)`."""
        return [
            c.args[0]
            for c in self._script.called("manual_seed", "seed")
            if isinstance(c.func, ast.Attribute) and name_of(c.func.value) == name and c.args
        ]
