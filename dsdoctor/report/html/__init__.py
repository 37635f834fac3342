"""Reports as one self-contained HTML file (extra `html`; docs/html.md)."""
