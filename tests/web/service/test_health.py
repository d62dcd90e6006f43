"""What operators ask of a running service, and what it answers when something it needs is away."""

from __future__ import annotations

from tests.web.conftest import School


def test_a_healthy_service_is_alive_and_ready(school: School) -> None:
    client = school.client()
    assert client.get("/healthz").json() == {"status": "ok"}
    ready = client.get("/readyz")
    assert ready.status_code == 200, ready.text
    assert ready.json()["checks"] == {"database": "ok", "files": "ok", "disk": "ok", "readers": "ok"}
