"""Who this process is among those that torchrun started, and what ranks do together."""
import functools
import os

import torch
import torch.distributed as dist


class Ranks:
    """The process group of all ranks, joined on the way into a `with` block and left on the way out."""

    def __enter__(self):
        self.local_rank = int(os.getenv("LOCAL_RANK", "0"))
        if torch.cuda.is_available():
            torch.cuda.set_device(self.local_rank)
            self.device, backend = torch.device("cuda", self.local_rank), "nccl"
        else:
            self.device, backend = torch.device("cpu"), "gloo"
        dist.init_process_group(backend)
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        return self

    def __exit__(self, *exception):
        dist.destroy_process_group()

    def add_up(self, totals):
        """Sum a tensor over all ranks, in place; all of them have to call this."""
        dist.all_reduce(totals)
        return totals

    def take_from_rank_zero(self, tensors):
        for tensor in tensors:
            dist.broadcast(tensor, src=0)

    def wait(self):
        dist.barrier()


def on_rank_zero(method):
    """Make a method of something with `.ranks` do nothing on all other ranks."""

    @functools.wraps(method)
    def guarded(self, *args, **kwargs):
        if self.ranks.rank == 0:
            return method(self, *args, **kwargs)
        return None

    return guarded
