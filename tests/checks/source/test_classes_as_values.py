"""DDP wraps a model wherever the class comes from: a table, a choice, an attribute, a name that is asked for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.checks.source.calls.classes_as_values import used_as_value
from grader.checks.source.script import Script
from grader.checks.source.training_loops import DDP as CLASS

IMPORT = "import torch\nfrom torch import nn\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
WRAPS = [
    "WRAPPERS = {'ddp': DDP, 'none': nn.Identity}\nmodel = WRAPPERS['ddp'](net)",
    "WRAPPERS = {'ddp': DDP, 'none': nn.Identity}\nmodel = WRAPPERS[kind](net)",
    "model = (DDP if world_size > 1 else nn.Identity)(net)",
    "class How:\n    wrapper = DDP\n    def wrap(self, m):\n        return self.wrapper(m)\nmodel = How().wrap(net)",
    "model = getattr(torch.nn.parallel, 'DistributedDataParallel')(net)",
    "wrapper = getattr(nn.parallel, 'DistributedDataParallel')\nmodel = wrapper(net)",
    "def wrapped(how, m):\n    return how(m)\nmodel = wrapped(DDP, net)",
    "from functools import partial\nhow = {'ddp': partial(DDP, static_graph=True)}\nmodel = how['ddp'](net)",
]
ONLY_TOLD_OF = [
    "bare = net.module if isinstance(net, (DDP, nn.DataParallel)) else net",
    "def bare(m: DDP | nn.Module) -> nn.Module | DDP:\n    return m.module",
    "whole = type(net) is DDP",
    "model: DDP = net",
    "match net:\n    case DDP():\n        net = net.module",
]


@pytest.mark.parametrize("text", WRAPS)
def test_a_class_out_of_a_value_wraps(script: Callable[..., Script], text: str) -> None:
    found = script(f"{IMPORT}{text}\nmodel(x)")
    assert found.training.wrapped(found.called("model")[0].func)


@pytest.mark.parametrize("text", ONLY_TOLD_OF)
def test_a_class_in_a_check_wraps_nothing(script: Callable[..., Script], text: str) -> None:
    found = script(IMPORT + text)
    assert not found.training.wraps
    assert not used_as_value(found.trees, found.names, CLASS)


def test_a_class_that_is_handed_to_who_knows_whom(script: Callable[..., Script]) -> None:
    found = script(f"{IMPORT}registry.add('ddp', DDP)\nmodel = registry.make('ddp', net)")
    assert not found.training.wraps
    assert len(used_as_value(found.trees, found.names, CLASS)) == 1
