"""The shuffler: holds sealed reports that it cannot read, and hands each crowd over once."""
