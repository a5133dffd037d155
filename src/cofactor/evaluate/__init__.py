"""Is it useful: errors of predictions, quality of recommendations, and how sure we are of both."""
