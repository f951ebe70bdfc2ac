"""Where the command `chapoly` starts: outside of the package, to say why that cannot be imported."""

import sys


def main() -> None:
    """Runs the command, or says in one line what keeps chapoly from being imported, with exit status 1."""
    try:
        from chapoly import cli
    except ImportError as error:
        sys.exit(f"chapoly: {error}")
    cli.main()
