"""The exceptions of chapoly, the same for both implementations. Their texts never hold secret content."""


class Error(Exception):
    """The base of chapoly's own exceptions."""

    __module__ = "chapoly"


class InvalidKey(Error, ValueError):
    """The key has the wrong length."""

    __module__ = "chapoly"


class InvalidNonce(Error, ValueError):
    """The nonce has the wrong length."""

    __module__ = "chapoly"


class CounterOverflow(Error, OverflowError):
    """A counter or position is out of range, or there is more data than keystream. Nothing was written."""

    __module__ = "chapoly"


class StateError(Error, RuntimeError):
    """The object is closed, or another call on it is in progress. Nothing has changed."""

    __module__ = "chapoly"


class InvalidTag(Error):
    """The tag does not match, or what was given is not as long as a tag. The message must be discarded."""

    __module__ = "chapoly"


class PureBackendWarning(RuntimeWarning):
    """chapoly runs in pure Python, because its native module could not be built or is missing."""

    __module__ = "chapoly"
