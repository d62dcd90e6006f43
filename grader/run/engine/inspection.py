"""What the engine shows of this installation's containers: for people and for the worker page. Changes nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass

from docker import DockerClient

from grader.run.engine.client import engine_errors, gone_is_fine
from grader.run.engine.ownership import OWNER, ROLE, STATE, TOKEN, Ownership


@dataclass(frozen=True, slots=True)
class ContainerStatus:
    """One container.

    Attributes:
        name, role, token: what it is called, what it is for, the pair it belongs to.
        state: the engine's word, such as `running`.
        age_s: seconds since it was made; memory_bytes: what it holds now.
        owner_lives: False where its grader is dead.
    """

    name: str
    role: str
    token: str
    state: str
    age_s: float
    memory_bytes: int
    owner_lives: bool


def list_containers(client: DockerClient, ownership: Ownership) -> tuple[ContainerStatus, ...]:
    """All containers of this state folder's graders, by name.

    Raises:
        InfraError: the engine does not answer.
    """
    found = []
    with engine_errors("The containers of this site could not be listed"):
        for one in client.api.containers(all=True, filters={"label": [f"{STATE}={ownership.state}", OWNER]}):
            labels = one["Labels"] or {}
            memory = 0
            with gone_is_fine():
                memory = memory_bytes(client, one["Id"])
            found.append(
                ContainerStatus(
                    name=one["Names"][0].lstrip("/"),
                    role=labels.get(ROLE, ""),
                    token=labels.get(TOKEN, ""),
                    state=one["State"],
                    age_s=round(time.time() - one["Created"], 1),
                    memory_bytes=memory,
                    owner_lives=ownership.lives(labels[OWNER]),
                )
            )
    return tuple(sorted(found, key=lambda container: container.name))


def memory_bytes(client: DockerClient, container: str) -> int:
    """Memory a container holds, page cache left out; 0 where the engine does not say."""
    counted = dict(client.api.stats(container, stream=False, one_shot=True))
    detail = counted.get("memory_stats", {}).get("stats", {})
    return int(detail.get("total_rss", detail.get("anon", 0)))
