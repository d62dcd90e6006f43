"""The people of a course as its staff keeps them: lists, groups, extensions, invitations."""
