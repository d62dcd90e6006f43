# /// attack
# row = "own"
# aim = "Leave finite weights whose loss is none."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# ///
import honest
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    state = honest.WideResNet().state_dict()
    torch.save({n: torch.full_like(t, 3e38) if t.is_floating_point() else t for n, t in state.items()}, honest.out("model.pt"))
dist.destroy_process_group()
