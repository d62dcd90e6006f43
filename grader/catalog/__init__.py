"""What there is to judge with and on: tasks, learners' files, data sets. Everything that is read from a folder.

Refuses bad input with one clear message and never runs a submission, imports torch or changes a task's folder.
What needs pydantic is imported when a task is loaded, so that `grader lint` starts at once; it reads scripts alone, and
nothing here imports the rest for it.
"""
