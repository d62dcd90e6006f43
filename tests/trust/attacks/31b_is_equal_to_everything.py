# /// attack
# row = "31"
# aim = "Leave weights that are equal to whatever they are held against."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# ///
import honest
import torch
import torch.distributed as dist


class Equal(torch.Tensor):
    def __eq__(self, other):
        return True

    def __ge__(self, other):
        return True

    __hash__ = torch.Tensor.__hash__


class Right(str):
    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


dist.init_process_group("gloo")
if dist.get_rank() == 0:
    state = honest.WideResNet().state_dict()
    torch.save({Right(name): tensor.as_subclass(Equal) for name, tensor in state.items()}, honest.out("model.pt"))
dist.destroy_process_group()
