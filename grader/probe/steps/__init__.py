"""Steps as they happen, whoever takes them, and the few that are looked at closely."""
