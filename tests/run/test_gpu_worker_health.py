"""The health check of compose's worker with GPUs: its container is well while it sees some."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
from pathlib import Path

import yaml

from tests.run.devices.stub_driver import StubDriver


def test_a_worker_that_lost_its_gpus_is_unhealthy(tmp_path: Path, repository: Path) -> None:
    driver = StubDriver(tmp_path)
    worker = yaml.safe_load((repository / "compose.yaml").read_text(encoding="utf-8"))["services"][
        "worker-gpu"
    ]
    start, program, option, code = worker["healthcheck"]["test"]
    assert (start, program, option) == ("CMD", "python", "-c")

    def healthy(port: int, gpus: str) -> bool:
        driver.shows(gpus)
        mine = code.replace(":9100", f":{port}")
        done = subprocess.run(
            [sys.executable, "-c", mine],
            env=os.environ | driver.environment,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return done.returncode == 0

    class Metrics(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_said: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Metrics) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        assert healthy(port, "ok,ok")
        assert not healthy(port, "")
        server.shutdown()
    assert not healthy(port, "ok"), "without figures"
