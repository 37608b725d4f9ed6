"""The pages of definitions: list, preview, push, close."""
