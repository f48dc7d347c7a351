"""What is wrong with what the reader asked for: one line, what and where and what to do."""


class Wrong(Exception):
    """The line."""
