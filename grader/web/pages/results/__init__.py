"""How a class did: gradebook, lists of attempts, class views, and files to take away."""
