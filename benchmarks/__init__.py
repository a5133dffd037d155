"""Ours and the peers side by side: `make bench` prints one table and writes results.json."""
