"""The trusted scorer: a process of its own that asks a task's author how good a run's weights and files are."""
