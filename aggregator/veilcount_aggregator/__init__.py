"""One deployment of veilcount: it counts randomized answers, and says what they mean."""
