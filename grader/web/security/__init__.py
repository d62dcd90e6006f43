"""What stands between a request and a route: sessions, forgery checks, rate limits, size caps, headers.

Each keeps one kind of harm out and knows no page. Who may see what is `grader.web.security.access`'s.
"""
