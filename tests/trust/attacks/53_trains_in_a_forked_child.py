# /// attack
# row = "own"
# aim = "Let a forked child, which the probe does not follow, do the training."
# runtimes = ["docker"]
# verdicts = ["held", "rejected"]
# ///
import os

import honest

if os.environ["RANK"] == "0":
    child = os.fork()
    if child == 0:
        os.environ.update(WORLD_SIZE="1", MASTER_PORT="29556")
        os.environ.pop("TORCHELASTIC_USE_AGENT_STORE", None)
        honest.main(epochs=3)
        os._exit(0)
    os.waitpid(child, 0)
