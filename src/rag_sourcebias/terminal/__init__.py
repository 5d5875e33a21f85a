"""The terminal: where commands print, how options are declared, pages of help."""
