# /// attack
# row = "own"
# aim = "Write garbage into the probe's pipe: no JSON, deep JSON, half a character, a line of megabytes."
# runtimes = ["docker"]
# verdicts = ["held", "rejected", "accepted"]
# harmless = "it trained; garbage is counted and told to staff"
# codes = ["TRUST002"]
# ///
import os
import stat

import honest


def pipe():
    """The descriptor through which this rank is watched."""
    for descriptor in sorted(map(int, os.listdir("/proc/self/fd")), reverse=True):
        try:
            if descriptor > 2 and stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                return descriptor
        except OSError:
            continue
    return None


descriptor = pipe()
for line in (b"\x00\xff\n", b"[" * 200_000 + b"\n", b'{"e": "step", "t": NaN}\n', b'{"e": 5, "t": 1}\n', b'{"e": "step", "t": 1e400, "n": -1}\n', b"9" * (3 << 20) + b"\n", b'{"e": "batch", "t": 0.1, "indices": ' + b"9" * 9000 + b"}\n"):
    os.write(descriptor, line)
honest.main()
