"""The container engine as this grader uses it: who is asked, what is made there, and how it goes away again."""
