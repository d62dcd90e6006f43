# /// attack
# row = "honest"
# aim = "None: the honest attempt that runs between and beside the others and must keep its verdict."
# runtimes = ["process", "docker"]
# verdicts = ["accepted"]
# harmless = "it is honest"
# endings = ["completed"]
# wall_s = 180
# ///
"""Train with DistributedDataParallel, as one should."""

import honest

if __name__ == "__main__":
    honest.main()
