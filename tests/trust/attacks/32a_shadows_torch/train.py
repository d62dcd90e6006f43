# /// attack
# row = "32"
# aim = "Bring a torch of its own."
# runtimes = ["process", "docker"]
# verdicts = ["rejected", "crashed"]
# must_print = ["Leaves a trace"]
# ///
import torch

print("ATTACK", torch.__doc__.strip(), flush=True)
