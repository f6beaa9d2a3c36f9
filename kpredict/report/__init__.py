"""One pure function `render(report) -> str` per format."""
