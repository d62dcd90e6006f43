"""What there is to judge with and on: tasks, learners' files, data sets. Everything that is read from a folder.

Refuses bad input with one clear message and never runs a submission, imports torch or changes a task's folder.
What needs pydantic is imported when a task is loaded, so that `grader lint` starts at once.
"""

from grader.catalog.datasets import data_command, dataset_names, find_dataset, prepare
from grader.catalog.promised_submissions import submissions_of
from grader.catalog.submissions import read_submission
from grader.catalog.tasks import find_tasks, load_task, reference

__all__ = [
    "data_command",
    "dataset_names",
    "find_dataset",
    "find_tasks",
    "load_task",
    "prepare",
    "read_submission",
    "reference",
    "submissions_of",
]
