"""What changed between two attempts, in a terminal. Everything comes from a service, and is made safe to print."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from grader.cli.printing import stdout_console
from grader.client import ChangesAnswer
from grader.client.answers import FileChangeAnswer, FindingChangeAnswer
from grader.report.safe_text import one_line
from grader.report.terminal_writer import STYLES, Voice, worded
from grader.report.wording import SEVERITY_TONES, plural

_LINE_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def print_changes(changes: ChangesAnswer) -> None:
    """Outcomes, findings that went and came, then the diff."""
    voice = Voice(stdout_console())
    if changes.since is None:
        voice.say(worded(f"Attempt {changes.attempt_id} has none before it that could be compared."))
        return
    before, now = f"attempt {changes.since}", f"attempt {changes.attempt_id}"
    width = max(len(before), len(now))
    for name, outcome in ((before, changes.outcome_before), (now, changes.outcome)):
        voice.say(Text(f"{name:<{width}}  {one_line(outcome)}"), hang=width + 2)
    _print_findings("Gone", changes.went, voice)
    _print_findings("New", changes.came, voice)
    voice.gap()
    stayed = plural(changes.num_stayed, "finding") if changes.num_stayed else "No finding"
    voice.say(worded(" ".join((f"{stayed} as before.", *changes.notes))))
    for file in changes.files:
        _print_file(file, voice)


def _print_findings(heading: str, findings: Sequence[FindingChangeAnswer], voice: Voice) -> None:
    if not findings:
        return
    voice.heading(heading)
    for one in findings:
        line = Text(f"{one_line(one.code)}  ", style=STYLES[SEVERITY_TONES[one.severity]])
        line.append_text(Text(one_line(one.title), style="default not bold"))
        asides = [one_line(text) for text in (one.place, one.doubt) if text]
        line.append(f"  {', '.join(asides)}" if asides else "", style="dim default not bold")
        voice.say(line, indent=2, hang=2)


def _print_file(file: FileChangeAnswer, voice: Voice) -> None:
    renamed = f" from {one_line(file.old_path)}" if file.kind == "renamed" else ""
    voice.heading(f"{one_line(file.path)} {one_line(file.kind)}{renamed}")
    for line in file.diff.split("\n")[:-1]:
        voice.console.print(
            Text(one_line(line.expandtabs(4)), style=_LINE_STYLES.get(line[:1], "")),
            highlight=False,
            soft_wrap=True,
        )
    if file.num_left_out:
        voice.say(worded(f"… and {plural(file.num_left_out, 'more line')}", "dim"))
