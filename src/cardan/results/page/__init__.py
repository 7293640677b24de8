"""Pages: a mechanism in three dimensions in a browser, as a file or from a local server."""
