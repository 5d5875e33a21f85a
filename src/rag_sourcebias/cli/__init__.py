"""The command line: the application, and what its commands share."""
