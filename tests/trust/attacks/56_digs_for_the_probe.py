# /// attack
# row = "own"
# aim = "Find the probe's writer among all live objects, and make it deaf."
# runtimes = ["docker"]
# verdicts = ["held", "rejected", "deadlocked"]
# codes = ["TRUST001"]
# ///
import gc

import honest
import torch

found = [thing for thing in gc.get_objects() if type(thing).__name__ == "Writer"]
waiting, seen = [torch.save], set()
while waiting:
    thing = waiting.pop()
    if id(thing) in seen:
        continue
    seen.add(id(thing))
    found += [thing] if type(thing).__name__ == "Writer" and hasattr(thing, "origin") else []
    waiting += [cell.cell_contents for cell in getattr(thing, "__closure__", None) or ()]
    waiting += list(vars(thing).values()) if type(thing).__name__ == "module" and "probe" in thing.__name__ else []
    waiting += list(getattr(thing, "__globals__", {}).values()) if "probe" in getattr(thing, "__module__", "") else []
for writer in found:
    if hasattr(writer, "origin"):
        writer._fd = -1
honest.main(epochs=3)
