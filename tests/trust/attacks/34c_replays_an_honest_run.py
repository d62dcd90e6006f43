# /// attack
# row = "34"
# aim = "Train on one rank alone and replay what the ranks of an honest run told, about its own weights."
# runtimes = ["docker"]
# verdicts = ["held"]
# codes = ["TRUST001", "TRUST002"]
# says = ["were not written by its probe"]
# fill = ["TRACE"]
# ///
import os
import time

import forging
import honest

TRACE = "@TRACE@"

rank = int(os.environ["RANK"])
watched = forging.pipe()
copy = os.dup(watched)
os.close(watched)
began = time.monotonic()
sums = forging.train_alone() if rank == 0 else honest.burn(1.0)
forging.tell(lambda line: os.write(copy, line + b"\n"), forging.story(TRACE, rank), sums, 1.0, began)
os.close(copy)
