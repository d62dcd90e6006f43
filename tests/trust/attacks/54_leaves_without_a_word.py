# /// attack
# row = "own"
# aim = "Train as one should and leave by os._exit, which skips the end of the script."
# runtimes = ["docker"]
# verdicts = ["accepted"]
# harmless = "it trained, and who leaves at once is heard first"
# ///
import os

import honest

honest.main()
os._exit(0)
