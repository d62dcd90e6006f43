"""What many requests ask for at the same moment, asked once: tokens and submissions, queue positions, task folders."""
