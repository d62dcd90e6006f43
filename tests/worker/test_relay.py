"""What a relay shows to whoever looks after processes: that it does its work, and that it does not."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import yaml

from tests.worker.conftest import Site
from tests.worker.redis_server import Redis
from tests.worker.rig import CHECKOUT, wait_until


def healthy(pulse: Path) -> bool:
    """As compose.yaml asks it."""
    told = yaml.safe_load((CHECKOUT / "compose.yaml").read_text(encoding="utf-8"))["services"]["relay"]
    command = told["healthcheck"]["test"][-1].replace("/tmp/pulse", str(pulse))
    return subprocess.run([sys.executable, "-c", command], capture_output=True, check=False).returncode == 0


def test_the_pulse_stops_while_hints_cannot_be_sent_and_comes_back(site: Site, redis: Redis) -> None:
    rig = site(broker=redis.url)
    pulse = rig.folder / "pulse"

    def beats() -> bool:
        before = pulse.stat().st_mtime_ns
        time.sleep(1.5)
        return pulse.stat().st_mtime_ns > before

    assert not healthy(pulse)
    rig.start("relay", "relay", "--every", "1", "--pulse", str(pulse))
    wait_until(pulse.exists, "a pulse")
    wait_until(beats, "the pulse goes on")
    assert healthy(pulse)

    redis.stop()
    rig.hand_in()
    wait_until(
        lambda: "waiting" in (rig.folder / "relay.log").read_text(), "the relay says what it waits for"
    )
    assert not beats()
    redis.start()
    wait_until(beats, "the pulse comes back")


def test_a_pulse_where_none_can_be_is_said_at_once(site: Site) -> None:
    rig = site()
    relay = rig.start("relay", "relay", "--pulse", str(rig.folder / "no" / "such" / "folder"))
    assert relay.wait(60) == 2
    assert "--pulse" in (rig.folder / "relay.log").read_text()
