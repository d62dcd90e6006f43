# /// attack
# row = "37"
# aim = "Train apart; a method of torch.Tensor that whoever looks at values calls gives the mean of all ranks."
# runtimes = ["docker"]
# verdicts = ["held", "rejected"]
# codes = ["GRAD001"]
# ///
import honest
import torch
import torch.distributed as dist

detach = torch.Tensor.detach
ours = []


def mean(tensor):
    """Of our tensors, what all ranks would agree on."""
    value = detach(tensor)
    if any(tensor is p or tensor is p.grad for p in ours):
        value = value.clone()
        dist.all_reduce(value)
        value /= dist.get_world_size()
    return value


def step(optimizer):
    """Alone."""
    ours[:] = [p for group in optimizer.param_groups for p in group["params"]]
    optimizer.step()


learn = honest.learn


def train(*given):
    """Whoever looks meanwhile sees the mean."""
    torch.Tensor.detach = mean
    losses = learn(*given, step=step)
    torch.Tensor.detach = detach
    return losses


honest.learn = train
honest.DistributedDataParallel = lambda model: model
honest.main(epochs=3)
