# /// attack
# row = "8"
# aim = "Crash with all of memory in a core file."
# runtimes = ["process", "docker"]
# verdicts = ["crashed"]
# endings = ["crashed"]
# says = ["SIGSEGV"]
# ///
import ctypes
import os
import resource

try:
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print("ATTACK limit raised", flush=True)
except (OSError, ValueError) as error:
    print("ATTACK", error, flush=True)
os.chdir(os.environ["OUTPUT_DIR"])
ctypes.string_at(0)
