"""Numbers with nouns, for messages."""


def quantity(count: int, noun: str) -> str:
    """Format a number with a noun: `1 document`, `2 documents`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
