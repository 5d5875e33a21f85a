"""The terminal: where commands print, how options and their pages of help are made."""
