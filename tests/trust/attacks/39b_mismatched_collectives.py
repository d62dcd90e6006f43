# /// attack
# row = "39"
# aim = "Let ranks wait for each other in different collectives."
# runtimes = ["docker"]
# verdicts = ["deadlocked", "crashed"]
# says = ["train.py"]
# wall_s = 60
# ///
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    dist.barrier()
    dist.broadcast(torch.zeros(3), src=1)
else:
    dist.all_reduce(torch.zeros(5))
    dist.barrier()
dist.barrier()
