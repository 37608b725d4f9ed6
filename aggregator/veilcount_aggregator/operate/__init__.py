"""What operators run: the command line, the doctor, the watch, the demo."""
