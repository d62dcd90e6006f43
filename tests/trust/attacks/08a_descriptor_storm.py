# /// attack
# row = "8"
# aim = "Open files until there are no descriptors."
# runtimes = ["process", "docker"]
# verdicts = ["rejected"]
# must_print = ["Too many open files few"]
# ///
import os

held = []
try:
    while len(held) < 1_000_000:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error:
    print("ATTACK", error.strerror, "few" if len(held) < 5_000 else "many", flush=True)
for descriptor in held:
    os.close(descriptor)
