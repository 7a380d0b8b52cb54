"""`python -m muniment.cli`, where the script is not on the PATH."""

from muniment.cli import main

main()
