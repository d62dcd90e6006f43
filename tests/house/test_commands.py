"""Every command explains itself and speaks JSON, however the program is started."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from grader import cli

COMMANDS = [module.NAME for module in cli.command_modules()]


@pytest.mark.parametrize("command", COMMANDS)
def test_command_has_help_and_json(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main([command, "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert "--json" in shown
    summary = shown.split("\n\n")[1].strip()
    assert summary.endswith((".", ":")) or len(summary.split()) > 3, (
        f"`grader {command} --help` has no description"
    )


def test_package_runs_as_a_module_and_lists_its_commands(repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "grader", "--help"],
        cwd=repository,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    listed = set(re.findall(r"^ {4}([a-z]+)\b", done.stdout, flags=re.MULTILINE))
    assert listed == set(COMMANDS), done.stdout


def test_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["garde"])
    assert stopped.value.code == 2
    assert "garde" in capsys.readouterr().err
