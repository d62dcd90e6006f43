"""The health check of compose's worker with GPUs: its container is well while it sees some."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
from pathlib import Path

import yaml

from tests.run.gpus.engine import compile_c


def test_a_worker_that_lost_its_gpus_is_unhealthy(tmp_path: Path, repository: Path) -> None:
    stub = Path(__file__).with_name("devices") / "nvml_stub.c"
    compile_c(stub, tmp_path / "libnvidia-ml.so.1", "-shared", "-fPIC")
    worker = yaml.safe_load((repository / "compose.yaml").read_text(encoding="utf-8"))["services"][
        "worker-gpu"
    ]
    start, program, option, code = worker["healthcheck"]["test"]
    assert (start, program, option) == ("CMD", "python", "-c")

    def healthy(port: int, **driver: str) -> bool:
        environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)} | driver
        mine = code.replace(":9100", f":{port}")
        done = subprocess.run(
            [sys.executable, "-c", mine], env=environment, capture_output=True, timeout=60, check=False
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
        assert healthy(port, STUB_GPUS="ok,ok")
        assert not healthy(port, STUB_GPUS="")
        assert not healthy(port), "without a driver"
        server.shutdown()
    assert not healthy(port, STUB_GPUS="ok"), "without figures"
