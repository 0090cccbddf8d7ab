"""The list of commands in the help of a group."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

WHOLE = 1_000  # characters of a description: more than any has


class WholeDescriptions(TyperGroup):
    """A group that wraps the descriptions of its commands; typer cuts them at the end of the line."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the names and descriptions of the commands."""
        names = self.list_commands(ctx)
        commands = {name: command for name in names if (command := self.get_command(ctx, name)) and not command.hidden}
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(WHOLE)) for name, command in commands.items()])
