# /// attack
# row = "1"
# aim = "Fork for ever, every child too."
# runtimes = ["docker"]
# verdicts = ["crashed", "rejected", "timed_out"]
# must_print = ["Cannot fork"]
# wall_s = 5
# beside = true
# ///
import os

os.execv("/bin/sh", ["sh", "-c", "bomb() { bomb | bomb & }; bomb; sleep 60"])
