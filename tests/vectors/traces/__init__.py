"""The traces of tests/vectors/trace.json, by what happens to the device."""
