"""What changed between two attempts, in a terminal. Everything comes from a service, and is made safe to print."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from grader.cli.printing import stdout_console
from grader.client import ChangesAnswer
from grader.client.answers import FileChangeAnswer, FindingChangeAnswer
from grader.report.safe_text import one_line
from grader.report.terminal.terminal_writer import STYLES, TerminalWriter, worded
from grader.report.words.wording import SEVERITY_TONES, plural

_LINE_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def print_changes(changes: ChangesAnswer) -> None:
    """Outcomes, findings that went and came, then the diff."""
    writer = TerminalWriter(stdout_console())
    if changes.since is None:
        writer.write(worded(f"Attempt {changes.attempt_id} has none before it that could be compared."))
        return
    before, now = f"attempt {changes.since}", f"attempt {changes.attempt_id}"
    width = max(len(before), len(now))
    for name, outcome in ((before, changes.outcome_before), (now, changes.outcome)):
        writer.write(Text(f"{name:<{width}}  {one_line(outcome)}"), hang=width + 2)
    _print_findings("Gone", changes.went, writer)
    _print_findings("New", changes.came, writer)
    writer.gap()
    stayed = plural(changes.num_stayed, "finding") if changes.num_stayed else "No finding"
    writer.write(worded(" ".join((f"{stayed} as before.", *changes.notes))))
    for file in changes.files:
        _print_file(file, writer)


def _print_findings(heading: str, findings: Sequence[FindingChangeAnswer], writer: TerminalWriter) -> None:
    if not findings:
        return
    writer.heading(heading)
    for one in findings:
        line = Text(f"{one_line(one.code)}  ", style=STYLES[SEVERITY_TONES[one.severity]])
        line.append_text(Text(one_line(one.title), style="default not bold"))
        asides = [one_line(text) for text in (one.place, one.doubt) if text]
        line.append(f"  {', '.join(asides)}" if asides else "", style="dim default not bold")
        writer.write(line, indent=2, hang=2)


def _print_file(file: FileChangeAnswer, writer: TerminalWriter) -> None:
    renamed = f" from {one_line(file.old_path)}" if file.kind == "renamed" else ""
    writer.heading(f"{one_line(file.path)} {one_line(file.kind)}{renamed}")
    for line in file.diff.split("\n")[:-1]:
        writer.console.print(
            Text(one_line(line.expandtabs(4)), style=_LINE_STYLES.get(line[:1], "")),
            highlight=False,
            soft_wrap=True,
        )
    if file.num_left_out:
        writer.write(worded(f"… and {plural(file.num_left_out, 'more line')}", "dim"))
