"""The command `zibaldone`, also as `python -m zibaldone`."""

from zibaldone.cli.interrupts import EXIT_CODE, quit_at_once

quit_at_once()  # whoever imports this module is the command

from zibaldone.cli.main import main as run  # noqa: E402 - Ctrl-C may come while it is imported


def main() -> None:
    try:
        run()
    except KeyboardInterrupt:  # between the end of a command and that of the process
        raise SystemExit(EXIT_CODE) from None


if __name__ == "__main__":
    main()
