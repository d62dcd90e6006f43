"""What people add to grades: reviews, comments, requests, judging again."""
