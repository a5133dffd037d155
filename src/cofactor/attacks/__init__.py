"""Is it private? Somebody tries: attacks on what one role sees, and audits of what was promised."""
