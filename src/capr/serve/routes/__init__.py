"""Routes: one file for each thing that can be asked of the server."""
