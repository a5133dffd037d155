"""Published tables and figures, made again: what a paper says beside what we measure."""
