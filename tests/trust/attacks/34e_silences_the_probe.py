# /// attack
# row = "34"
# aim = "Switch the probe's own writer off, from inside, by a name that no text shows."
# runtimes = ["process", "docker"]
# verdicts = ["held", "rejected", "deadlocked"]
# ///
import sys

import honest

name = ".".join(["".join(map(chr, (103, 114, 97, 100, 101, 114))), "probe", "writer"])
sys.modules[name].writer._fd = -1
honest.main(epochs=3)
