"""The manifests for Kubernetes say what its schemas allow, and ask the database what it knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from sqlalchemy import text

from grader.cli import build_parser
from grader.store import schema
from grader.store.database import Store

KUBERNETES = "1.33"


def _manifest(repository: Path, name: str) -> Any:
    return yaml.safe_load((repository / "containers" / "kubernetes" / name).read_text())


def _job(repository: Path) -> Any:
    return _manifest(repository, "worker-job.yaml")


def test_the_job_is_one_and_a_mistake_would_be_seen(repository: Path) -> None:
    kubernetes_validate.validate(_job(repository), KUBERNETES, strict=True)
    wrong = _job(repository)
    wrong["spec"]["template"]["spec"]["containers"][0]["resources"]["limit"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES, strict=True)


def test_the_jobs_of_keda_are_jobs(repository: Path) -> None:
    """KEDA's own kinds have no schema here; the job that it makes has."""
    spec = _manifest(repository, "scaled-job.yaml")["spec"]["jobTargetRef"]
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "one"}, "spec": spec}
    kubernetes_validate.validate(job, KUBERNETES, strict=True)


def test_the_worker_is_started_as_its_command_line_is(repository: Path) -> None:
    (container,) = _job(repository)["spec"]["template"]["spec"]["containers"]
    (line,) = container["args"]
    words = line.replace('"$POD_NAME"', "pod").replace("$(($(date +%s) + 7050))", "7050").split()
    assert words[:4] == ["exec", "python", "-m", "grader"]
    assert build_parser().parse_args(words[4:]).until == 7050.0


def test_the_database_answers_the_query_of_the_scaled_job(repository: Path, tmp_path: Path) -> None:
    (trigger,) = _manifest(repository, "scaled-job.yaml")["spec"]["triggers"]
    store = Store(f"sqlite:///{tmp_path / 'grader.db'}")
    schema.upgrade(store)
    with store.read() as connection:
        assert connection.execute(text(trigger["metadata"]["query"])).scalar_one() == 0
    store.close()
