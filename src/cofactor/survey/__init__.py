"""Distributions of private numbers, from people who trust nobody: each answers once, by chance."""
