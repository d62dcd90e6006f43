"""What a star import or a module of the submission hands on is known as what it was imported there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from grader.checks.rule import load_rules
from grader.checks.source.script import Script, parse
from grader.model.submission import SourceFile, Submission

_COMMON = """
import torch
import torch.distributed as dist
from torch.utils.data import *
from torch.nn import functional as F
Wrapped = torch.nn.parallel.DistributedDataParallel
EPOCHS = 7
_HIDDEN = 3
def join():
    dist.init_process_group("gloo")
"""


@pytest.mark.parametrize(
    "text",
    [
        "from common import *\nhere('a', {})",
        "from common import torch, dist, F, DataLoader, Wrapped\nhere('a', {})",
        "def f():\n    from common import torch, dist, F, DataLoader, Wrapped\n    here('a', {})",
        "from further import *\nhere('a', {})",
        "from parts.inner import *\nhere('a', {})",
    ],
)
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("torch.no_grad", "torch.no_grad"),
        ("dist.get_rank", "torch.distributed.get_rank"),
        ("F.cross_entropy", "torch.nn.functional.cross_entropy"),
        ("DataLoader", "torch.utils.data.DataLoader"),
        ("Wrapped", "torch.nn.parallel.DistributedDataParallel"),
    ],
)
def test_names_are_known_through_modules_of_the_submission(
    script: Callable[..., Script], here: Any, text: str, written: str, meant: str
) -> None:
    found = script(
        text.format(written),
        common=_COMMON,
        further="from common import *\nfrom unknown import *\n",
        parts__inner="from .most import *\n",
        parts__most="from common import *\n",
    )
    assert found.names.qualified(here(found, "a").args[1]) == meant


@pytest.mark.parametrize(
    "text", ["import common\nhere('a', common.torch.save)", "import common as c\nhere('a', c.torch.save)"]
)
def test_names_are_known_below_a_module(script: Callable[..., Script], here: Any, text: str) -> None:
    found = script(text, common=_COMMON)
    assert found.names.qualified(here(found, "a").args[1]) == "torch.save"


def test_a_package_hands_on_what_its_modules_hold(here: Any) -> None:
    files = {
        "parts/__init__.py": "from .inner import *\n",
        "parts/inner.py": "import torch\n",
        "train.py": "from parts import *\nhere('a', torch.save)",
    }
    found = parse(Submission("test", tuple(SourceFile(path, text) for path, text in files.items())))
    assert found.names.qualified(here(found, "a").args[1]) == "torch.save"


def test_values_and_functions_come_along(script: Callable[..., Script], here: Any) -> None:
    found = script(
        "from common import *\njoin()\nfor epoch in range(EPOCHS):\n    here('a', EPOCHS)", common=_COMMON
    )
    assert found.values.constant(here(found, "a").args[1]) == 7
    (init,) = found.calls("torch.distributed.init_process_group")
    function = found.names.tree(init).function(init)
    assert function is not None
    assert len(found.graph.sites(function)) == 1


def test_what_is_bound_here_or_comes_later_is_meant(script: Callable[..., Script], here: Any) -> None:
    own = script("from common import *\nimport fast as torch\nhere('a', torch.save)", common=_COMMON)
    assert own.names.qualified(here(own, "a").args[1]) == "fast.save"
    other = "import fast as torch"
    later = script(
        "from common import *\nfrom other import *\nhere('a', torch.save)", common=_COMMON, other=other
    )
    assert later.names.qualified(here(later, "a").args[1]) == "fast.save"


@pytest.mark.parametrize(
    "common",
    [
        "import torch\n__all__ = ['join']\n",
        "import torch as _torch\n_EPOCHS = 7\n",
        "from common import *\n",
        "from train import *\n",
    ],
)
def test_a_star_import_takes_public_names_alone(
    script: Callable[..., Script], here: Any, common: str
) -> None:
    found = script(
        "from common import *\nhere('a', torch.save)\nhere('b', _torch.save)\nhere('c', _EPOCHS)",
        common=common,
    )
    assert [found.names.qualified(here(found, label).args[1]) for label in "abc"] == [None] * 3


@pytest.mark.parametrize(
    ("before", "after"),
    [("@torch.no_grad()\n", ""), ("@torch.inference_mode()\n", ""), ("", "    with torch.no_grad():\n  ")],
)
def test_gradients_are_off_where_the_module_comes_by_a_star(
    script: Callable[..., Script], before: str, after: str
) -> None:
    loop = "    for x, y in val_loader:\n          right += (net(x).argmax(1) == y).sum()\n"
    found = script(
        "from common import *\njoin()\n"
        "net = Wrapped(build())\n"
        "val_loader = DataLoader(val_set)\n"
        f"{before}def validate(right):\n    net.eval()\n{after}{loop}    return right\n"
        "loss(net).backward()\nvalidate(0)\n",
        common=_COMMON,
    )
    rule = next(r for r in load_rules() if r.code == "EVAL006")
    assert list(rule.source_hits(found)) == []
