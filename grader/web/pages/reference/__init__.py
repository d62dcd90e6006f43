"""What anybody may read: rules, the programming interface, static files."""
