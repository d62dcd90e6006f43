"""LTI 1.3 Advantage as a tool: launches, deep linking, rosters (NRPS), grades (AGS) and registration.

Speaks the messages of the specifications, on behalf of the pages and of what delivers grades. Knows no page.
"""
