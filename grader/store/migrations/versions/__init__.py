"""The steps, oldest first by name. A step that was released is never changed; it knows no module of the package."""
