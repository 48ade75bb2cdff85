"""`python -m firnline`: the command line, of the very interpreter that is named."""

from firnline.cli import main

if __name__ == "__main__":
    main()
