"""Real parties on machines of their own: what they agree on, what each decides, and how they are reached."""
