"""What to install where a package is missing that a command needs: `ddp-grader` alone hands in and lints."""

from __future__ import annotations

from grader.errors import UsageError

OF_SERVICE = frozenset(
    {
        "alembic",
        "argon2",
        "authlib",
        "babel",
        "celery",
        "copydetect",
        "cryptography",
        "fastapi",
        "httpcore",
        "itsdangerous",
        "joserfc",
        "kombu",
        "limits",
        "prometheus_client",
        "segno",
        "sqlalchemy",
        "starlette",
        "structlog",
        "uvicorn",
    }
)
"""Modules that `[service]` brings and `[judge]` does not."""


def missing_extra(error: ModuleNotFoundError) -> UsageError:
    """What to say of a module that is not there; one of our own is a bug, and raised on."""
    module = (error.name or "").partition(".")[0]
    if module in ("", "grader"):
        raise error
    extra = "service" if module in OF_SERVICE else "judge"
    return UsageError(
        f"this command needs {module}, which is not installed here: python -m pip install 'ddp-grader[{extra}]'"
    )
