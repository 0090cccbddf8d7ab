"""Serving: the library over HTTP, with access, limits and an audit trail, and a web page. Needs the extra `serve`."""
