"""What a worker of a real job sees of its node, with a driver that shows all of the node's GPUs to everybody."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.cluster.slurm import GPUS_PER_NODE, SlurmCluster
from tests.run.devices.stub_driver import StubDriver

LOOK = """#!/bin/bash
{python} -m grader devices --json > devices-$1
{python} -m grader doctor --json > doctor-$1
exit 0
"""


def test_jobs_of_one_node_keep_to_their_own_gpus(cluster: SlurmCluster, tmp_path: Path) -> None:
    driver = StubDriver(tmp_path)
    driver.shows(",".join(["ok"] * GPUS_PER_NODE))
    env = driver.environment | {"GRADER_STATE_DIR": str(tmp_path / "state"), "PYTHONPATH": str(Path.cwd())}
    offered, said = {}, {}
    for name, gpus in (("a", 2), ("b", 1), ("none", 0)):
        wanted = [f"--gres=gpu:{gpus}"] if gpus else []
        # Side by side on the one node.
        cluster.submit(
            LOOK.format(python=sys.executable), *wanted, "--nodelist=n1", arguments=[name], env=env
        )
    cluster.wait_until_all("COMPLETED")
    for name in ("a", "b", "none"):
        devices: dict[str, Any] = json.loads((cluster.folder / f"devices-{name}").read_text())
        offered[name] = {gpu["uuid"] for gpu in devices["gpus"] if not gpu["unfit"]}
        checkups = json.loads((cluster.folder / f"doctor-{name}").read_text())
        said[name] = next(one for one in checkups if one["what"] == "Slurm")
    assert [len(offered[name]) for name in ("a", "b", "none")] == [2, 1, 0]
    assert not offered["a"] & offered["b"]
    for name in ("a", "b"):
        assert not said[name]["ok"]
        assert "devices are not enforced here" in said[name]["remedy"]
