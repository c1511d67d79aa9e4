"""`python -m ankita_agent` is the command itself, so that a unit can name an interpreter instead of a script."""

from ankita_agent.cli.main import main

if __name__ == "__main__":
    main()
