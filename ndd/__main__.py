"""`python -m ndd COMMAND`: demo, doctor, index, compile, bench, stubs, coverage."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from ndd._tensor.secrets import error_text, without_secrets

_COMMANDS = {
    "demo": ("ndd.demo.command", "train a small classifier on a folder of photographs"),
    "doctor": ("ndd.doctor", "say what is installed and works here, and what to install"),
    "index": ("ndd.index", "write the index files of TFRecord, tar (WebDataset) and RecordIO files"),
    "compile": ("ndd.compile.command", "compile kernels before they are needed, for the CPU and for GPUs"),
    "bench": ("ndd.bench.command", "time ndd beside DALI"),
    "stubs": ("ndd.stubs.command", "write the signatures of operators down for type checkers"),
    "coverage": ("ndd.coverage.command", "list the operators, and which of DALI's are here"),
}


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; errors that a user can fix are one sentence on stderr and exit code 1."""
    parser = argparse.ArgumentParser(prog="python -m ndd", description="Imperative data loading for deep learning.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    wanted = sys.argv[1:] if arguments is None else arguments
    for name, (module, text) in _COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        if name in wanted[:1]:  # a command's own module is imported only for that command
            import_module(module).add_arguments(command)
    if not wanted:
        parser.print_help()
        return 0
    args = parser.parse_args(wanted)
    try:
        return import_module(_COMMANDS[args.command][0]).run(args)
    except KeyboardInterrupt:
        print(f"\nndd {args.command}: interrupted", file=sys.stderr)
        return 130
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        print(f"ndd {args.command}: {_sentence(error)}", file=sys.stderr)
        return 1


def _sentence(error: Exception) -> str:
    """The message, without the system's number of an error."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return without_secrets(f"{error.filename}: {error.strerror}")
    return error_text(error)


if __name__ == "__main__":
    sys.exit(main())
