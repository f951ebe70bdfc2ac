"""python -m chapoly: the chapoly command."""

from chapoly.cli import main

main()
