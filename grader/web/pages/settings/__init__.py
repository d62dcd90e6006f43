"""What staff sets in a course: its words, tasks, dates, life, deliveries, and who did what."""
