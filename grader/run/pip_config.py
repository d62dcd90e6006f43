"""How this machine reaches its package index, put so that a build can use it without writing it down anywhere.

Reads pip's own answer (`pip config list`, which knows files and PIP_* variables); what only exists on this machine's
disk is left out. The result holds addresses and perhaps passwords: hand it to a build as a secret, nothing else.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_LINE = re.compile(r"(?P<section>:env:|[a-z]+)\.(?P<key>[a-z-]+)=(?P<value>.*)", re.DOTALL)
_SECTIONS = ("global", "install", ":env:")
"""Later ones win, as pip has it."""
_ADDRESSES = ("index_url", "extra_index_url", "find_links")
_PLAIN = ("no_index", "trusted_host", "proxy", "retries", "timeout")
_BUNDLES = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class PipConfig:
    """pip's configuration for a build.

    Attributes:
        text: content of a pip.conf.
        certificates: file of the authorities to trust, None for pip's own.
    """

    text: str
    certificates: Path | None


def read_pip_config(certificates_at: str) -> PipConfig:
    """What pip is told on this machine.

    Args:
        certificates_at: path inside the build where `certificates` will lie.
    """
    options = _options(_pip_answer())
    given = options.pop("cert", None) or next((os.environ[v] for v in _BUNDLES if os.environ.get(v)), None)
    certificates = Path(given) if given and Path(given).is_file() else None
    if certificates is not None:
        options["cert"] = certificates_at
    lines = [f"{key} = " + value.replace("\n", "\n    ") for key, value in sorted(options.items())]
    return PipConfig("\n".join(["[global]", *lines, ""]), certificates)


def _options(printed: str) -> dict[str, str]:
    ranked: dict[str, tuple[int, str]] = {}
    for line in printed.splitlines():
        match = _LINE.fullmatch(line.strip())
        if match is None or match["section"] not in _SECTIONS:
            continue
        key = match["key"].removeprefix("default-").replace("-", "_")
        try:
            value = str(ast.literal_eval(match["value"]))
        except (SyntaxError, ValueError):
            continue
        if key in _ADDRESSES:
            value = "\n".join(word for word in value.split() if word.startswith(("http://", "https://")))
        elif key not in (*_PLAIN, "cert"):
            continue
        rank = _SECTIONS.index(match["section"])
        if value and rank >= ranked.get(key, (-1, ""))[0]:
            ranked[key] = (rank, value)
    return {key: value for key, (_rank, value) in ranked.items()}


def _pip_answer() -> str:
    for command in ([sys.executable, "-m", "pip"], ["pip"], ["pip3"]):
        try:
            done = subprocess.run(
                [*command, "config", "list"], capture_output=True, text=True, timeout=_PATIENCE_S, check=True
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return done.stdout
    # No pip here (uv made this environment, say): the build uses pip's defaults.
    return ""
