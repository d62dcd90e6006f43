"""What a learning platform and its people are answered: launches, registration, choosing tasks."""
