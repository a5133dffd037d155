"""`python -m cofactor` is the command line too."""

from cofactor.cli import main

main()
