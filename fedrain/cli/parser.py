"""The parser of every command: one-line errors, and help with examples that a test runs."""

import argparse
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from fedrain.errors import InputError


class _Formatter(argparse.HelpFormatter):
    """Wraps a text of one line, and keeps one of several lines as it is: lists and examples."""

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: Any = None) -> None:
        """Name only what must be given: a list of all options follows."""
        parts = []
        for one in actions:
            name = one.metavar or one.dest
            if not one.option_strings:
                text = f"{name} ..." if one.nargs == argparse.PARSER else name
                parts.append(text if one.required else f"[{text}]")
            elif one.required:
                parts.append(f"{one.option_strings[0]} {name}")
        options = ["[options]"] if any(one.option_strings for one in actions) else []
        text = usage or " ".join(["%(prog)s", *options, *parts])
        super().add_usage(text, actions, groups, prefix)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return text
        return super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """Reads one command; wrong arguments get one line, as every other bad input does.

    Args:
        arguments: Of :class:`argparse.ArgumentParser`.
        examples: What each example shows, and the command itself, for the end of the help.
        more: Of :class:`argparse.ArgumentParser`.
    """

    def __init__(
        self, *arguments: Any, examples: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        self.examples = dict(examples or {})
        if self.examples:
            shown = (f"  {text}:\n    {command}" for text, command in self.examples.items())
            more["epilog"] = "\n".join(["examples:", *shown])
        more["formatter_class"] = _Formatter
        super().__init__(*arguments, **more)
        # A value such as -5..5 is no option, just as -5 is none.
        self._negative_number_matcher = re.compile(r"^-\.?\d")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """A command may want its arguments in another form: see ``rewrite`` of evaluate."""
        rewrite = self._defaults.get("rewrite")
        return super().parse_known_args(rewrite(args) if rewrite and args else args, namespace)

    def error(self, message: str) -> NoReturn:
        """Raise, instead of printing the usage and exiting."""
        raise InputError(f"{message} (see: {self.prog} --help)")
