"""One file per family of ops. Every module here is imported by the registry; nothing to list."""
