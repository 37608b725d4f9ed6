"""Coverage-guided fuzzing of every decoder; what it found is replayed from tests/vectors/bad."""
