"""`python -m fencerow`: the command, where a debugger or options of the interpreter come first."""

from fencerow.cli.main import main

if __name__ == "__main__":
    main()
