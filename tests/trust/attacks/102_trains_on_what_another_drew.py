# /// attack
# row = "37"
# aim = "Every rank draws its share; all train on what rank 0 drew, which noise makes look different."
# runtimes = ["docker", "process"]
# verdicts = ["rejected"]
# codes = ["GRAD001"]
# says = ["what comes of the samples that rank 1 drew has a share of"]
# ///
import honest
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader


class OfRankZero(DataLoader):
    """Draws what its sampler deals out, and gives something else."""

    def __iter__(self):
        for images, labels in super().__iter__():
            dist.broadcast(images, src=0)
            dist.broadcast(labels, src=0)
            yield images + 0.1 * dist.get_rank() * torch.randn_like(images), labels


shard = honest.shard


def shard_of_rank_zero(dataset):
    loader, sampler = shard(dataset)
    return OfRankZero(dataset, batch_size=loader.batch_size, sampler=sampler, drop_last=True), sampler


honest.shard = shard_of_rank_zero
honest.main(epochs=5)
