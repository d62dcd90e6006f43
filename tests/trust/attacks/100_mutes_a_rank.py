# /// attack
# row = "38"
# aim = "Rank 1 trains for all to see, and a hook makes its gradients nothing; rank 0's count double. DDP averages."
# runtimes = ["process"]
# verdicts = ["rejected"]
# codes = ["GRAD001"]
# says = ["practically rank 0 trains the network by itself"]
# ///
import honest
import torch.distributed as dist


class Muted(honest.WideResNet):
    def forward(self, x):
        logits = super().forward(x)
        if logits.requires_grad:
            logits.register_hook(lambda gradient: gradient * (2 if dist.get_rank() == 0 else 1e-5))
        return logits


honest.main(model=Muted())
