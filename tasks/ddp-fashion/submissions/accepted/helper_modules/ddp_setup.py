"""Everything about processes: start and end of the group, who is the main one, sums over ranks."""
import contextlib
import functools
import os

import torch
import torch.distributed as dist


@contextlib.contextmanager
def process_group():
    """The default group for the time of a `with` block; yields this rank's device."""
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        device, backend = torch.device("cuda", torch.cuda.current_device()), "nccl"
    else:
        device, backend = torch.device("cpu"), "gloo"
    dist.init_process_group(backend)
    yield device
    dist.barrier()
    dist.destroy_process_group()


def main_process_only(function):
    """Run `function` on rank 0; on the other ranks calling it does nothing."""

    @functools.wraps(function)
    def guarded(*args, **kwargs):
        if dist.get_rank() == 0:
            return function(*args, **kwargs)
        return None

    return guarded


@contextlib.contextmanager
def first_on_each_machine():
    """The first rank of every machine runs the block before the others do."""
    is_first = int(os.environ["LOCAL_RANK"]) == 0
    if not is_first:
        dist.barrier()
    yield is_first
    if is_first:
        dist.barrier()


def sum_over_ranks(numbers, device):
    """Element-wise sums of a list of numbers over all ranks."""
    tensor = torch.tensor(numbers, dtype=torch.float64, device=device)
    dist.all_reduce(tensor)
    return tensor.tolist()


def same_buffers_everywhere(module):
    """Give all ranks the BatchNorm statistics of rank 0."""
    for buffer in module.buffers():
        dist.broadcast(buffer, src=0)
