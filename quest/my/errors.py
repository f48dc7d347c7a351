"""How a check ends that does not pass."""


class Failed(Exception):
    """The server does not do what the stage asks. The text is one sentence to the learner, with what was measured."""


class Unseen(Exception):
    """This machine lacks what the check needs: the stage can neither be passed nor failed here."""
