"""File modes in the state of a server."""


def modes(folder):
    """Return the modes of files that other users may access, by name, the folder included."""
    return {path.name: oct(path.stat().st_mode) for path in (folder, *folder.rglob("*")) if path.stat().st_mode & 0o077}
