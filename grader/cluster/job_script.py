"""The batch script of a worker job, from a template: the package's own, or a site's.

A site's own template is given the same words; `templates/worker.sh.j2` is the one to begin with.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, StrictUndefined, TemplateError

from grader.cluster.worker_job import num_gpus_of
from grader.errors import UsageError

TEMPLATE = Path(__file__).parent / "templates" / "worker.sh.j2"
LEAD_S, EARLY_S = 90, 60
"""How long before a job's time is up its worker hears of it, and how much earlier than that Slurm may say so."""


@dataclass(frozen=True, slots=True)
class JobTerms:
    """What every worker job is to be.

    Attributes:
        command: the grader's own command line on a compute node, quoted for a shell.
        minutes: time limit; cpus: cores, per GPU where there are some.
        idle_s: seconds without anything to judge after which a worker ends.
        runtime: what submissions are run by.
        server: the service that workers ask instead of a database; "": they reach the database.
        logs: folder of the jobs' output; it must be there.
    """

    command: str
    minutes: int
    cpus: int
    idle_s: int
    runtime: str
    server: str
    logs: Path


def job_script(terms: JobTerms, need: str, template: Path = TEMPLATE) -> str:
    """The script of a worker for attempts with this need.

    Raises:
        UsageError: the template can't be read, or has a mistake; the text says where.
    """
    engine = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    try:
        text = template.read_text(encoding="utf-8")
        engine.filters["quote"] = shlex.quote
        words = {"terms": terms, "need": need, "num_gpus": num_gpus_of(need), "lead_s": LEAD_S}
        words["done_s"] = LEAD_S + EARLY_S
        return engine.from_string(text).render(words).rstrip() + "\n"
    except OSError as error:
        raise UsageError(f"--template {template}: it can't be read ({error.strerror})") from None
    except (TemplateError, UnicodeDecodeError) as error:
        line = getattr(error, "lineno", None)
        raise UsageError(f"--template {template}{f', line {line}' if line else ''}: {error}") from None
