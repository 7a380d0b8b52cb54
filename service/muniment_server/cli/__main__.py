"""`python -m muniment_server.cli`, where the script is not on the PATH."""

from muniment_server.cli.root import main

main()
