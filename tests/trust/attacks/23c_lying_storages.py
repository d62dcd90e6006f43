# /// attack
# row = "23"
# aim = "Claim tensors that are a thousand times larger than what the file holds."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# says = ["model.pt"]
# ///
import os

import honest
import torch

if os.environ["RANK"] == "0":
    state = honest.WideResNet().state_dict()
    state["fc.weight"] = torch.zeros(1).expand(1 << 20, 1 << 20)
    torch.save(state, honest.out("model.pt"))
