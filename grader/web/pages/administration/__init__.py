"""What administrators see of the whole service: courses, people, platforms, the queue."""
