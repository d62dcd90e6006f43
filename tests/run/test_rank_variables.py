"""What a site may set in the environment of ranks, and what it is told where it may not."""

from __future__ import annotations

import pytest

from grader.errors import UsageError
from grader.run.rank_variables import rank_variables


def test_names_and_values_are_read_as_a_shell_would() -> None:
    text = "NCCL_P2P_DISABLE=1 NCCL_DEBUG_SUBSYS=INIT,NET TORCH_FR_BUFFER_SIZE=500 CUDA_MODULE_LOADING='a b'"
    assert dict(rank_variables(text)) == {
        "NCCL_P2P_DISABLE": "1",
        "NCCL_DEBUG_SUBSYS": "INIT,NET",
        "TORCH_FR_BUFFER_SIZE": "500",
        "CUDA_MODULE_LOADING": "a b",
    }
    assert rank_variables("") == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("NCCL_P2P_DISABLE", "give NAME=VALUE"),
        ("nccl_debug=INFO", "give NAME=VALUE"),
        ("NCCL_DEBUG='INFO", "cannot be read"),
        ("LD_PRELOAD=/tmp/x.so", r"cannot set LD_PRELOAD: only NCCL_\*"),
        ("TORCH_SHOW_CPP_STACKTRACES=1", r"TORCH_NCCL_\*, TORCH_FR_\* are for a site"),
        ("NCCL_SOCKET_IFNAME=eth0", "the grader sets it itself"),
        ("CUDA_VISIBLE_DEVICES=0", "the grader sets it itself"),
    ],
)
def test_anything_else_is_refused_with_its_reason(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        rank_variables(text)
