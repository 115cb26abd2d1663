"""Makes `python -m kizami` the same as `kizami`."""

from kizami.cli.main import main

if __name__ == "__main__":
    main()
