"""What operators see: health, metrics, and a log line per request. Tells nothing of what anybody wrote."""
