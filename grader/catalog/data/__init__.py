"""Data that tasks are judged on: sets that everybody knows, and a task's own; made, kept, and taken to other hosts."""
