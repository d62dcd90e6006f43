# /// attack
# row = "own"
# aim = "Leave weights of NaN and infinity, so that comparisons turn out as they like."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# says = ["NaN"]
# ///
import honest
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    state = honest.WideResNet().state_dict()
    torch.save({n: torch.full_like(t, float("nan")) if t.is_floating_point() else t for n, t in state.items()}, honest.out("model.pt"))
dist.destroy_process_group()
