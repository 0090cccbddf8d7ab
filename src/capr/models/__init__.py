"""The networks, each whole in one file. They need the extra `train`; searching does not."""
