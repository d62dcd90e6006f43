"""What learners' pages are made of: a task's page, findings beside the source, the chart of points.

The counterpart of `staff`; knows no route.
"""
