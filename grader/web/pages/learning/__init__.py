"""What learners see of a course: its tasks, their exam, group, rank and certificate."""
