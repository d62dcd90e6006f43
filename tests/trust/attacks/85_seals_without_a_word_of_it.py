# /// attack
# row = "own"
# aim = "As the one before, with every telling name put together at run time, and a sealed line made beside the writer."
# runtimes = ["docker"]
# verdicts = ["held"]
# codes = ["TRUST002"]
# says = ["were not written by its probe"]
# fill = ["TRACE"]
# ///
# Outcome: the text says nothing. The sealer serves the writer alone, so that the lines come without a seal.
import os
import time

import forging
import honest
import torch

TRACE = "@TRACE@"


def word(*numbers):
    """A name that nobody reads in the text."""
    return "".join(map(chr, numbers))


rank = int(os.environ["RANK"])
around = getattr(torch.save, word(95, 95, 103, 108, 111, 98, 97, 108, 115, 95, 95))
writer = around[word(119, 114, 105, 116, 101, 114)]
sealer = getattr(writer, word(95, 115, 101, 97, 108, 101, 114))
descriptor, writer._fd = writer._fd, -1
began = time.monotonic() - 0.5
sums = forging.train_alone() if rank == 0 else honest.burn(2.0)
forging.chatter(16 << 20)
forging.tell(lambda line: os.write(descriptor, sealer.sealed(line) + b"\n"), forging.story(TRACE, rank), sums, 1.0, began)
