"""Being launched by a learning platform: who comes, from which of its courses, and where they are led."""
