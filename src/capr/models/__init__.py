"""The networks, one per file. They need the extra `train`; searching does not."""
