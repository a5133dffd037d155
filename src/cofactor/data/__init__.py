"""What a party holds: ratings, where they come from, and how they are divided."""
